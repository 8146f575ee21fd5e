"""From text as it is written to words as they are spoken."""
