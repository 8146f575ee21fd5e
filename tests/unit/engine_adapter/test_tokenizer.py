"""Text as a stream, by tokenizers that write bytes as tokens of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models

from engine_adapter.checkpoint import TOKENIZER_FILE
from engine_adapter.families import FAMILIES
from engine_adapter.tokenizer import SpeechTokenizer

SPEC = FAMILIES["demo"]
WORDS = ["▁so", "▁it", "s", "é"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> SpeechTokenizer:
    """As of Llama 2: what is no token is its bytes, and a text begins without its space."""
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(250)}
    vocabulary |= {word: 250 + i for i, word in enumerate(WORDS)}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)])
    directory: Path = tmp_path_factory.mktemp("model")
    (directory / TOKENIZER_FILE).parent.mkdir()
    made.save(str(directory / TOKENIZER_FILE))
    return SpeechTokenizer(directory, SPEC)


def ids_of(*parts: str | bytes) -> list[int]:
    assert SPEC.text is not None
    ids: list[int] = []
    for part in parts:
        ids += part if isinstance(part, bytes) else [250 + WORDS.index(part)]
    return [SPEC.text.first_id + i for i in ids]


@pytest.mark.parametrize("step", [1, 2, 3, 100])
@pytest.mark.parametrize(
    "parts",
    [
        ("▁so", "€".encode(), "▁it", "s"),
        ("€€🙂".encode(), "▁it"),
        ("▁so", "世界 🙂🙂".encode(), "é", "é".encode()),
        (b"\x80\x80\x80\x80\x80", "▁so", b"\xe2\x82", "▁it"),
        ("▁so", "🙂".encode()[:3]),
    ],
)
def test_pieces_add_up_to_the_whole(
    tokenizer: SpeechTokenizer, parts: tuple[str | bytes, ...], step: int
) -> None:
    ids = ids_of(*parts)
    stream = tokenizer.stream()
    pieces = [stream.feed(ids[i : i + step]) for i in range(0, len(ids), step)]
    assert "".join(pieces) + stream.flush() == tokenizer.decode(ids)


def test_a_character_comes_with_its_last_byte(tokenizer: SpeechTokenizer) -> None:
    stream = tokenizer.stream()
    assert [stream.feed([i]) for i in ids_of("€€".encode())] == ["", "", "€"] * 2


def test_bytes_that_never_become_a_character_hold_nothing_up(tokenizer: SpeechTokenizer) -> None:
    stream = tokenizer.stream()
    pieces = [stream.feed([i]) for i in ids_of("€".encode(), b"\x80", "▁so", "▁it")]
    assert pieces == ["", "", "€", "", "\ufffd so", " it"]
