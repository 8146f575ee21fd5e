"""OpusLM-Dialogue as ESPnet publishes it: ``2epoch.pth`` in float32, and ``config.yaml``."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.official.checkpoint import (
    OfficialCheckpoint,
    backbone_config,
    make_readable,
    write_beside,
)
from tests.official.opuslm import EOS, TEXT, state_dict, write_training_config


def write_opuslm_dialogue(
    folder: Path, seed: int = 0, *, readable: bool = False
) -> OfficialCheckpoint:
    """Writes a tiny one: Llama's body, in the envelope that DeepSpeed makes.

    Args:
        readable: see ``make_readable``.
    """
    config = backbone_config("llama", 49152, mlp_bias=False)
    state = state_dict(config, 49152, seed)
    if readable:
        make_readable(state["corelm.lm_head.weight"], range(TEXT, TEXT + 49152), [EOS], 0.55)
    torch.save({"module": state}, folder / "2epoch.pth")
    write_training_config(folder, 49152)
    backbone, tokenizer = write_beside(folder, config)
    return OfficialCheckpoint("opuslm-dialogue", folder / "2epoch.pth", backbone, tokenizer, TEXT)
