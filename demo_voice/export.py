"""What was trained as a model directory (docs/generation.md, "Model directory")."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from demo_voice import quantizer as quantizers
from demo_voice.checkpoints import Checkpoint
from demo_voice.codec import load_decoder, load_quantizer
from demo_voice.language_model import backbone_config
from demo_voice.recipe import Recipe
from demo_voice.tokenizer import tokenizer
from demo_voice.training import LANGUAGE_MODEL_FILE, spec
from engine_adapter.checkpoint import CODEC_FOLDER, CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE

_CARD = "README.md"  # written by hand; stays when the weights are replaced


def export(work: Path, recipe: Recipe, directory: Path) -> None:
    """Writes the averaged weights (bfloat16), the codec (float16), tokenizer and spec.

    Raises:
        FileNotFoundError: the language model or the decoder has not been trained.
    """
    state = Checkpoint(work / LANGUAGE_MODEL_FILE).load()
    if state is None:
        raise FileNotFoundError(f"{work / LANGUAGE_MODEL_FILE}: has not been trained")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".model-") as scratch:
        made = Path(scratch) / "model"
        made.mkdir()
        replace(
            spec(),
            sampling=recipe.sampling,
            cfg_scale=recipe.cfg_scale,
            utterance_characters=recipe.utterance_characters,
        ).save(made)
        config = backbone_config(spec(), recipe.language_model)
        (made / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n")
        _save(state["average"], made / WEIGHTS_FILE, torch.bfloat16)
        (made / TOKENIZER_FILE).parent.mkdir()
        tokenizer().save(str(made / TOKENIZER_FILE))
        _export_codec(work, recipe, made / CODEC_FOLDER)
        if (directory / _CARD).exists():
            shutil.copy(directory / _CARD, made)
        if directory.exists():
            shutil.rmtree(directory)
        made.rename(directory)


def _export_codec(work: Path, recipe: Recipe, directory: Path) -> None:
    """Quantizer and decoder. There is no encoder: ``features`` are the latent space."""
    quantizers.dac_config(recipe.codec).save_pretrained(directory)
    parts = {
        "quantizer": load_quantizer(work, recipe.codec),
        "decoder": load_decoder(work, recipe.codec),
    }
    weights = {f"{p}.{k}": v for p, part in parts.items() for k, v in part.state_dict().items()}
    _save(weights, directory / WEIGHTS_FILE, torch.float16)


def _save(weights: dict[str, Tensor], path: Path, dtype: torch.dtype) -> None:
    small = {name: tensor.to("cpu", dtype).contiguous() for name, tensor in weights.items()}
    save_file(small, path, metadata={"format": "pt"})
    path.chmod(0o644)  # safetensors lets only the owner read it
