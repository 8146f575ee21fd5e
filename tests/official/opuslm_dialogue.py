"""OpusLM-Dialogue as ESPnet publishes it: ``2epoch.pth`` in float32, and ``config.yaml``."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.official.checkpoint import OfficialCheckpoint, backbone_config, write_beside
from tests.official.opuslm import state_dict, write_training_config


def write_opuslm_dialogue(
    folder: Path, seed: int = 0, *, readable: bool = False
) -> OfficialCheckpoint:
    """Writes a tiny one: Llama's body, in the envelope that DeepSpeed makes.

    Args:
        readable: see ``state_dict``.
    """
    config = backbone_config("llama", 49152, mlp_bias=False)
    state = state_dict(config, 49152, seed, readable=readable)
    torch.save({"module": state}, folder / "2epoch.pth")
    write_training_config(folder, 49152)
    backbone, tokenizer = write_beside(folder, config)
    return OfficialCheckpoint("opuslm-dialogue", folder / "2epoch.pth", backbone, tokenizer, ())
