"""What a model directory may lack, and what it cannot do then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.model_files import TOKENIZER_FILE, has_configuration
from engine_adapter.spec import SPEC_FILE, StreamSpec

_NO_TEXT = "no texts, in or out: it cannot be served"
_NO_AUDIO = "no audio, in or out: it cannot be served"
_NO_UNITS = "no audio in: it neither hears nor imitates"
_DEAF = "it does not hear"


@dataclass(frozen=True)
class MissingPart:
    """Something that is not there.

    Attributes:
        path: of it, within the model directory.
        cost: what the model cannot do without it.
    """

    path: str
    cost: str


def missing_parts(directory: Path, spec: StreamSpec) -> list[MissingPart]:
    """The parts that a model directory lacks.

    Args:
        directory: a model directory; its backbone and spec are there.
        spec: its spec.
    """
    found = {
        MissingPart(f"{SPEC_FILE}: text", _NO_TEXT): spec.text is not None,
        MissingPart(TOKENIZER_FILE, _NO_TEXT): (
            spec.text is None or (directory / TOKENIZER_FILE).is_file()
        ),
        MissingPart(f"{CODEC_FOLDER}/", _NO_AUDIO): (has_configuration(directory / CODEC_FOLDER)),
        MissingPart(f"{SSL_FOLDER}/", _NO_UNITS): (
            spec.codec_first_stream == 0 or has_configuration(directory / SSL_FOLDER)
        ),
        MissingPart(f"{AUDIO_ENCODER_FOLDER}/", _DEAF): (
            not spec.hears_embeddings or (directory / AUDIO_ENCODER_FOLDER).is_dir()
        ),
    }
    missing = [part for part, is_there in found.items() if not is_there]
    deafness = spec.deafness_in(directory)
    if deafness is not None:
        path, reason = deafness.split(": ", 1)
        if path not in {part.path for part in missing}:
            cost = _DEAF if spec.hears_embeddings else "it neither hears nor imitates"
            missing.append(MissingPart(path, f"{reason}: {cost}"))
    return missing


UNUSABLE = {
    "codec": MissingPart(f"{CODEC_FOLDER}/", f"cannot be used: {_NO_AUDIO}"),
    "ssl": MissingPart(f"{SSL_FOLDER}/", f"cannot be used: {_NO_UNITS}"),
    "audio_encoder": MissingPart(f"{AUDIO_ENCODER_FOLDER}/", f"cannot be used: {_DEAF}"),
    "tokenizer": MissingPart(TOKENIZER_FILE, f"cannot be used: {_NO_TEXT}"),
}
"""Parts that are there, and in vain."""
