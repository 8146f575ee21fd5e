"""What a model directory can do, told from its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, get_args

from safetensors import SafetensorError, safe_open

from engine_adapter.checkpoint import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    CheckpointError,
    ModelDirectory,
    has_configuration,
)
from engine_adapter.folders import CODEC_FOLDER, SSL_FOLDER
from engine_adapter.missing_parts import UNUSABLE, missing_parts
from engine_adapter.reasons import reason
from engine_adapter.spec import BY_EAR, SPEC_FILE, Ability, StreamSpec
from engine_adapter.tokenizer import read_tokenizer
from vocoder_service.audio_tower import AudioTower
from vocoder_service.codec import Codec, load_codec
from vocoder_service.configuration import model_type
from vocoder_service.ssl_units import SslTokenizer

_WIDTH = 15
# Of configurations that are almost right, the classes of transformers raise what they meet.
_FAULTS = (
    *(ValueError, OSError, RuntimeError, LookupError, TypeError, AttributeError),
    SafetensorError,
)
SPEECH = {"audio": "audio", "text+audio": "text, which is not spoken, then audio"}
"""In words, what a request for speech writes."""
_LOST: dict[str, tuple[Ability, ...]] = {
    UNUSABLE["codec"].path: ("speaks", "clones", "takes_instructions"),
    UNUSABLE["ssl"].path: BY_EAR,
    UNUSABLE["audio_encoder"].path: BY_EAR,
    UNUSABLE["tokenizer"].path: get_args(Ability),
    f"{SPEC_FILE}: text": get_args(Ability),
}
"""Abilities that a model has not without a part, whatever its family has."""
_PARTS = ("codec", "ssl", "audio_encoder", "tokenizer")


def check_codec(directory: Path, spec: StreamSpec) -> Codec:
    """Loads a codec for a family.

    Raises:
        FileNotFoundError, RuntimeError: it is not complete.
        ValueError: it is of an unknown type, or has other codes than the family.
    """
    streams = spec.streams[spec.codec_first_stream :]
    codec = load_codec(directory, num_codebooks=len(streams))
    sizes = {stream.size for stream in streams}
    if sizes != {codec.codebook_size}:
        raise ValueError(f"the codec has {codec.codebook_size} codes, the family {max(sizes)}")
    return codec


def check_ssl(directory: Path, spec: StreamSpec) -> None:
    """Loads an SSL model for a family.

    Raises:
        FileNotFoundError, RuntimeError: it is not complete.
        ValueError: it is of an unknown type, or has other units than the family.
    """
    if spec.codec_first_stream == 0:
        raise ValueError(f"{spec.family} has no SSL stream")
    units = SslTokenizer.load(directory).units
    if units != spec.streams[0].size:
        raise ValueError(f"it has {units} units, the family {spec.streams[0].size}")


def report(directory: Path) -> dict[str, Any]:
    """What ``speechlm inspect --json`` prints.

    Raises:
        CheckpointError: the backbone, its configuration or the spec is missing or malformed.
    """
    model = ModelDirectory.open(directory)
    spec, config = model.spec, model.config
    parameters, dtypes = _weights(model)
    parts = {
        "codec": _codec(directory / CODEC_FOLDER, spec),
        "ssl": _ssl(directory / SSL_FOLDER, spec),
        "audio_encoder": _audio_encoder(model),
        "tokenizer": _tokenizer(model),
    }
    missing = {part.path: part for part in missing_parts(directory, spec)}
    missing |= {
        UNUSABLE[n].path: UNUSABLE[n] for n, part in parts.items() if "error" in (part or ())
    }
    lost = {ability for path in missing for ability in _LOST.get(path, ())}
    return {
        "family": spec.family,
        "abilities": [a for a in spec.abilities_in(directory) if a not in lost],
        "writes": list(spec.outputs),
        "speech": spec.speech_output if "audio" in spec.outputs else None,
        "backbone": {
            "architecture": config.get("backbone_architecture"),
            "layers": config.get("num_hidden_layers"),
            "hidden": config.get("hidden_size"),
            "positions": config.get("max_position_embeddings"),
            "parameters": parameters,
            "dtypes": dtypes,
        },
        "streams": [
            {"codes": s.size, "first_id": s.first_id, "delay": s.delay} for s in spec.streams
        ],
        "vocabulary": {
            "ids": spec.vocab_size,
            "text": None if spec.text is None else [spec.text.first_id, spec.text.end],
        },
        **parts,
        "voices": list(spec.voices),
        "defaults": {
            "cfg_scale": spec.cfg_scale,
            **{kind: vars(sampling) for kind, sampling in spec.sampling.items()},
        },
        "missing": [{"path": part.path, "cost": part.cost} for part in missing.values()],
    }


def as_text(found: Mapping[str, Any]) -> str:
    """A report for people."""
    backbone, vocabulary = found["backbone"], found["vocabulary"]
    text = vocabulary["text"]
    defaults = {k: v for k, v in found["defaults"].items() if k != "cfg_scale"}
    lines = [
        ("family", found["family"]),
        ("abilities", ", ".join(found["abilities"])),
        ("writes", ", ".join(found["writes"])),
        (
            "backbone",
            f"{backbone['architecture']}, {backbone['layers']} layers, "
            f"hidden {backbone['hidden']}, {backbone['positions']} positions",
        ),
        ("parameters", f"{backbone['parameters']:,} in {', '.join(backbone['dtypes'])}"),
        ("streams", _streams(found["streams"])),
        (
            "vocabulary",
            f"{vocabulary['ids']} ids" + (f", text {text[0]}..{text[1] - 1}" if text else ""),
        ),
        *((name.replace("_", " "), _facts(found[name])) for name in _PARTS if found[name]),
        *((("speech", SPEECH[found["speech"]]),) if found["speech"] else ()),
        ("voices", ", ".join(found["voices"]) or "none of its own"),
        ("guidance", f"scale {found['defaults']['cfg_scale']:g} where a request does not say"),
        *((f"{kind} sampling", _facts(values)) for kind, values in defaults.items()),
        *(("missing", f"{part['path']}: {part['cost']}") for part in found["missing"]),
    ]
    return "\n".join(f"{name:<{_WIDTH}} {value}" for name, value in lines)


def _streams(streams: list[dict[str, int]]) -> str:
    codes = " ".join(str(stream["codes"]) for stream in streams)
    delays = " ".join(str(stream["delay"]) for stream in streams)
    return f"{len(streams)}, codes {codes}, delays {delays}"


def _facts(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())


def _weights(model: ModelDirectory) -> tuple[int, dict[str, int]]:
    """Number of parameters, and of tensors by dtype, from the files' headers."""
    parameters, dtypes = 0, Counter[str]()
    for shard in model.shards:
        try:
            with safe_open(shard, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 (not a mapping)
                    tensor = file.get_slice(name)
                    parameters += prod(tensor.get_shape())
                    dtypes[tensor.get_dtype()] += 1
        except SafetensorError as error:
            raise ValueError(f"{shard}: {error}") from error
    return parameters, dict(dtypes)


def _codec(directory: Path, spec: StreamSpec) -> dict[str, Any] | None:
    """None: there is none."""
    if not has_configuration(directory):
        return None
    try:
        codec = check_codec(directory, spec)
    except _FAULTS as error:
        return {"type": _type(directory), "error": reason(error)}
    return {
        "type": _type(directory),
        "sample_rate": codec.sample_rate,
        "frame_rate": codec.sample_rate / codec.hop_length,
        "codebooks": codec.num_codebooks,
        "codes": codec.codebook_size,
    }


def _type(directory: Path) -> str:
    config = directory / CONFIG_FILE
    if not config.is_file():
        return "espnet"
    try:
        return str(model_type(config))
    except (ValueError, OSError):
        return "unknown"


def _ssl(directory: Path, spec: StreamSpec) -> dict[str, Any] | None:
    """None: there is none, or the family needs none."""
    if spec.codec_first_stream == 0 or not has_configuration(directory):
        return None
    kind = _type(directory)
    try:
        check_ssl(directory, spec)
    except _FAULTS as error:
        return {"type": kind, "error": reason(error)}
    return {"type": kind, "units": spec.streams[0].size}


def _audio_encoder(model: ModelDirectory) -> dict[str, Any] | None:
    """None: there is none, or the family needs none."""
    directory = model.audio_encoder
    if directory is None:
        return None
    kind = _type(directory)
    try:
        tower = AudioTower.load(directory, model.config["hidden_size"])
    except _FAULTS as error:
        return {"type": kind, "error": reason(error)}
    limit = tower.limits.max_samples
    assert limit is not None
    return {"type": kind, "sample_rate": tower.sample_rate, "seconds": limit / tower.sample_rate}


def _tokenizer(model: ModelDirectory) -> dict[str, Any] | None:
    """None: there is none, or the family has no text."""
    if model.spec.text is None:
        return None
    file = model.path / TOKENIZER_FILE
    if not file.is_file():
        return None
    try:
        tokenizer = read_tokenizer(file, model.spec.text)
    except CheckpointError as error:
        return {"error": reason(error)}
    return {"ids": tokenizer.get_vocab_size()}
