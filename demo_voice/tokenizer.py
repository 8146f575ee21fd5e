"""Text as the bytes of its lower-case letters."""

from tokenizers import Tokenizer, normalizers

from engine_adapter.tiny import byte_tokenizer


def tokenizer() -> Tokenizer:
    """Bytes, after capitals and outer blanks are gone: ids 0 to 255."""
    made = byte_tokenizer()
    made.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip()]
    )
    return made
