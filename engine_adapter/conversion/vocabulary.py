"""OpusLM's ``config.yaml``: whether its ids are those of the family."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from engine_adapter.conversion.errors import ConversionError, shortened
from engine_adapter.conversion.formats import Format
from engine_adapter.spec import StreamSpec

# The same loader in C; this file has a line for every id.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_training_config(path: Path) -> dict[str, Any]:
    """
    Raises:
        ConversionError: the file is missing, or is no YAML mapping.
    """
    if not path.is_file():
        raise ConversionError(
            f"{path}: no such file; it is published beside the checkpoint, and --config names it"
        )
    return read_yaml(path)


def read_yaml(path: Path) -> dict[str, Any]:
    """
    Raises:
        ConversionError: the file is no YAML mapping.
        OSError: it cannot be read.
    """
    try:
        config = yaml.load(path.read_text(), Loader=_LOADER)
    except OSError:
        raise
    except Exception as error:  # PyYAML's constructors raise whatever they meet: a wrong date
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConversionError(f"{path}: is not YAML: {first_line}") from error
    if not isinstance(config, dict):
        raise ConversionError(f"{path}: is not a mapping")
    return config


def differences(config: Mapping[str, Any], spec: StreamSpec, layout: Format) -> list[str]:
    """What in a training configuration is not as the family has it; empty if all is.

    Args:
        config: content of ``config.yaml``.
        spec: the family's.
        layout: has the names of the ids that the spec uses.
    """
    found = []
    names = config.get("token_list")
    if not isinstance(names, list):
        found.append("it has no token_list")
    else:
        if len(names) != spec.vocab_size:
            found.append(f"the vocabulary is {len(names)} ids, not {spec.vocab_size}")
        wrong = [
            f"{i} is {names[i]!r}, not {name!r}"
            for i, name in layout.token_names.items()
            if i < len(names) and names[i] != name
        ]
        if wrong:
            found.append(f"ids: {shortened(wrong)}")
    found += _misplaced(config.get("token_bias"), spec)
    streams = config.get("codec_token_per_frame", spec.num_streams)
    if streams != spec.num_streams:
        found.append(f"codec_token_per_frame is {streams}, not {spec.num_streams}")
    voice = None if spec.cloning is None else spec.cloning.speaker
    if voice is not None and config.get("speaker_prompt_length", voice.frames) != voice.frames:
        length = config["speaker_prompt_length"]
        found.append(f"speaker_prompt_length is {length}, not {voice.frames}")
    return found


def _misplaced(bias: Any, spec: StreamSpec) -> list[str]:
    """Blocks of ids that stand elsewhere. A block is written as its first id, or as that and
    one past its last."""
    if not isinstance(bias, Mapping):
        return ["it has no token_bias"]
    assert spec.text is not None  # every family with such a file writes text
    ssl, *codec = spec.streams
    expected = {
        "ssl": (ssl.first_id, ssl.end),
        "codec": (codec[0].first_id, codec[-1].end),
        "text_bpe": (spec.text.first_id, spec.text.end),
    }
    found = []
    for block, place in expected.items():
        said = bias.get(block)
        if said is None:
            found.append(f"token_bias has no {block}")
        elif said != place[0] and list(place) != said:
            found.append(f"token_bias: {block} is {said}, not {list(place)}")
    return found
