"""How a checkpoint is to be asked for speech, by the ``inference.yaml`` published beside it.

Bagpiper's checkpoints have equal tensors and were trained for different prompts: the pretrained
one makes audio of a caption, the fine-tuned ones write a plan and a caption of their own first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_adapter.conversion.errors import ConversionError
from engine_adapter.conversion.vocabulary import read_yaml
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import SpecError, SpeechOutput, StreamSpec

# What ESPnet's REPRODUCE.md has for the pretrained checkpoint, which comes without a file.
PRETRAINED: Mapping[str, Any] = {
    "enforce_modality": ["audio"],
    "text": {"temperature": 0.6, "topk": 20, "min_step": 1},
    "audio": {"temperature": 0.8, "topk": 20, "cfg": 3, "min_step": 20},
}
_SPEECH: dict[tuple[str, ...], SpeechOutput] = {
    ("audio",): "audio",
    ("text", "audio"): "text+audio",
}


def read_recipe(given: Path | None, checkpoint: Path, names: tuple[str, ...]) -> Mapping[str, Any]:
    """The inference configuration of a checkpoint.

    Args:
        given: the file; None: the one beside the checkpoint, or ``PRETRAINED`` without one.
        names: that it may have.

    Raises:
        ConversionError: it cannot be read.
    """
    if given is not None:
        return read_yaml(given)
    beside = (checkpoint.parent / name for name in names)
    found = next((path for path in beside if path.is_file()), None)
    return PRETRAINED if found is None else read_yaml(found)


def speaking(spec: StreamSpec, recipe: Mapping[str, Any]) -> StreamSpec:
    """The spec of a checkpoint with this inference configuration.

    Raises:
        ConversionError: it says nothing of speech, or what no request could ask for.
    """
    modalities = recipe.get("enforce_modality")
    output = _SPEECH.get(tuple(modalities) if isinstance(modalities, list) else ())
    if output is None:
        raise ConversionError(f"enforce_modality is {modalities}, not [audio] or [text, audio]")
    text, audio = (_segment(recipe, name) for name in ("text", "audio"))
    assert spec.text is not None  # who thinks before it speaks writes text
    answer = spec.prompts[output][len(spec.prompts["audio"]) :]
    try:
        return replace(
            spec,
            speech_output=output,
            instructed=(*spec.instructed, *answer),
            text=replace(spec.text, min_tokens=int(text.get("min_step", 1))),
            min_frames=int(audio.get("min_step", 1)),
            cfg_scale=float(audio.get("cfg", 1)),
            sampling={"text": _sampling(text), "audio": _sampling(audio)},
        )
    except (SpecError, TypeError, ValueError) as error:
        raise ConversionError(str(error)) from error


def _segment(recipe: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    segment = recipe.get(name)
    if not isinstance(segment, Mapping) or not {"temperature", "topk"} <= set(segment):
        raise ConversionError(f"{name} has no temperature and topk")
    return segment


def _sampling(segment: Mapping[str, Any]) -> SamplingDefaults:
    return SamplingDefaults(float(segment["temperature"]), int(segment["topk"]))
