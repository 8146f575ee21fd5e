"""OpusLM-Dialogue as ESPnet publishes it: ``2epoch.pth`` in float32, and ``config.yaml``."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.official.checkpoint import OfficialCheckpoint, backbone_config, write_beside
from tests.official.opuslm import state_dict, write_training_config


def write_opuslm_dialogue(folder: Path, seed: int = 0) -> OfficialCheckpoint:
    """Writes a tiny one: Llama's body, in the envelope that DeepSpeed makes."""
    config = backbone_config("llama", 49152, mlp_bias=False)
    torch.save({"module": state_dict(config, 49152, seed)}, folder / "2epoch.pth")
    write_training_config(folder, 49152)
    backbone, tokenizer = write_beside(folder, config)
    return OfficialCheckpoint("opuslm-dialogue", folder / "2epoch.pth", backbone, tokenizer, ())
