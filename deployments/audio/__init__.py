"""From PCM at a codec's rate to the bytes of an answer."""
