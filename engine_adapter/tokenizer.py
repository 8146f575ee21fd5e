"""Text to model ids and back, whole or as a stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from engine_adapter.id_ranges import TextRange
from engine_adapter.model_files import TOKENIZER_FILE, CheckpointError
from engine_adapter.spec import StreamSpec

# What the decoder writes for bytes that are not (or not yet) a UTF-8 character.
_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
_MOST_INCOMPLETE = 3  # bytes of a character that lacks one


def read_tokenizer(file: Path, text: TextRange) -> Tokenizer:
    """A ``tokenizer.json`` for a text range.

    Raises:
        CheckpointError: the file is missing, malformed, or has more ids than the range.
    """
    if not file.is_file():
        raise CheckpointError(f"{file}: no such file")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises nothing more specific
        raise CheckpointError(f"{file}: {error}") from error
    size = tokenizer.get_vocab_size()
    if size > text.size:
        raise CheckpointError(f"{file}: {size} ids, the text range holds {text.size}")
    return tokenizer


class SpeechTokenizer:
    """The tokenizer of a model directory, in model ids.

    Model id ``spec.text.first_id + i`` is the tokenizer's id ``i``.
    """

    def __init__(self, directory: str | Path, spec: StreamSpec) -> None:
        """Loads ``tokenizer/tokenizer.json`` of a model directory.

        Raises:
            CheckpointError: the file is missing, malformed, or has more ids than the
                spec's text range, or the family has no text range.
        """
        if spec.text is None:
            raise CheckpointError(f"{spec.family}: the family has no text range")
        self._tokenizer = read_tokenizer(Path(directory) / TOKENIZER_FILE, spec.text)
        self._text = spec.text

    def encode(self, text: str) -> list[int]:
        """Model ids of a text; no special tokens are added. Those that are written in it, as
        MOSS-TTSD's ``<speaker2>``, are taken as such."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return [self._text.first_id + i for i in encoding.ids]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of model ids. Special tokens, and ids outside the text range or unknown to
        the tokenizer, give no text; bytes that are no UTF-8 give U+FFFD."""
        first, end = self._text.first_id, self._text.end
        return self._tokenizer.decode([i - first for i in ids if first <= i < end])

    def stream(self) -> TextStream:
        """A fresh incremental decoder."""
        return TextStream(self)


class TextStream:
    """Decodes ids as they come: what is fed, and the flush, add up to ``decode`` of all ids.

    Text is decoded behind the ids of the previous piece, because some decoders treat the
    beginning of a text differently (they strip its leading space).
    """

    def __init__(self, tokenizer: SpeechTokenizer) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []
        self._pending: list[int] = []
        self._emitted = 0  # characters of the pending ids' text that have been returned

    def feed(self, ids: Iterable[int]) -> str:
        """Takes model ids; returns the text that became complete, perhaps none.

        A character whose last byte has not come is held back: one U+FFFD, or, with decoders
        that write one for each byte, up to three.
        """
        pieces = []
        for i in ids:
            self._pending.append(i)
            text = self._pending_text()
            if not text.endswith(_INCOMPLETE):
                pieces.append(text[self._emitted :])
                if text:
                    self._context = self._pending
                self._pending, self._emitted = [], 0
            else:
                # Only the last character can still be incomplete.
                run = len(text) - len(text.rstrip(_INCOMPLETE))
                if len(self._pending) > _MOST_INCOMPLETE:
                    run = min(run, _MOST_INCOMPLETE)
                complete = max(self._emitted, len(text) - run)
                pieces.append(text[self._emitted : complete])
                self._emitted = complete
        return "".join(pieces)

    def flush(self) -> str:
        """Ends the text; returns what was held back (U+FFFD for an incomplete character)."""
        text = self._pending_text()[self._emitted :]
        self._context, self._pending, self._emitted = [], [], 0
        return text

    def _pending_text(self) -> str:
        context = self._tokenizer.decode(self._context)
        text = self._tokenizer.decode(self._context + self._pending)
        if text.startswith(context):
            return text[len(context) :]
        # Some decoders give bytes in a row up all together while they do not add up to characters.
        return self._tokenizer.decode(self._pending)
