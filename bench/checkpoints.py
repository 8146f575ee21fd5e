"""The two model directories that are compared: one backbone, with and without streams."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine_adapter.checkpoint import CONFIG_FILE, STREAM_EMBEDDING, WEIGHTS_FILE
from engine_adapter.spec import StreamSpec

FAMILY, HIDDEN, LAYERS = "demo", 256, 6
_HEAD = "lm_head.weight"


@dataclass(frozen=True)
class Checkpoints:
    """The benchmark's model.

    Attributes:
        speech: a model directory (docs/generation.md).
        stock: its backbone alone, as any Hugging Face model.
        parameters: of the backbone.
    """

    speech: Path
    stock: Path
    spec: StreamSpec
    parameters: int

    def describe(self) -> dict[str, Any]:
        """Plain values for the report."""
        return {
            "family": FAMILY,
            "hidden": HIDDEN,
            "layers": LAYERS,
            "streams": self.spec.num_streams,
            "vocabulary": self.spec.vocab_size,
            "parameters": self.parameters,
        }


def make_checkpoints(directory: Path) -> Checkpoints:
    """Writes both into ``directory``."""
    from safetensors.torch import load_file, save_file

    speech = make_endless(FAMILY, directory / "speech", HIDDEN, LAYERS)
    spec = StreamSpec.load(speech)
    weights = load_file(speech / WEIGHTS_FILE)

    stock = directory / "stock"
    stock.mkdir()
    config = json.loads((speech / CONFIG_FILE).read_text())
    config["architectures"] = [config.pop("backbone_architecture")]
    (stock / CONFIG_FILE).write_text(json.dumps(config))
    del weights[STREAM_EMBEDDING]
    save_file(weights, stock / WEIGHTS_FILE, metadata={"format": "pt"})
    return Checkpoints(speech, stock, spec, sum(w.numel() for w in weights.values()))


def make_endless(family: str, directory: Path, hidden: int, layers: int) -> Path:
    """Writes a random model directory whose requests end at their limits only.

    The head rows of the end ids are set to zero. Their logit is then 0, the middle of the
    others, and no draw among the 30 largest can end a request before its limit, while every
    step does exactly the work of a trained model's.
    """
    import torch
    from safetensors.torch import load_file, save_file

    from engine_adapter.tiny import make_tiny

    made = make_tiny(family, directory, hidden=hidden, layers=layers)
    spec = StreamSpec.load(made)
    weights = load_file(made / WEIGHTS_FILE)
    ends = {*spec.audio_end_ids, *(spec.text.end_ids if spec.text else ())}
    weights[_HEAD][torch.tensor(sorted(ends))] = 0
    save_file(weights, made / WEIGHTS_FILE, metadata={"format": "pt"})
    return made
