"""MOSS-TTSD (v0.5, v0.7) as a family that is data alone: docs/new-family.md tells what this does.

``python -m engine_adapter.moss_ttsd CHECKPOINT OUT`` makes a model directory of the published
one, all but ``codec/``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor

from engine_adapter.checkpoint import (
    CONFIG_FILE,
    STREAM_EMBEDDING,
    TOKENIZER_FILE,
    WEIGHTS_INDEX_FILE,
    CheckpointError,
)
from engine_adapter.spec import TEXT_SLOT, SamplingDefaults, Stream, StreamSpec, TextRange

CHANNELS, CODES = 8, 1024
TEXT_VOCABULARY, FIRST_SPEECH_ID = 152697, 151665  # channel 0: text, its codes, marks
STYLE = (
    "You are a speech synthesizer that generates natural, realistic, and human-like "
    "conversational audio from dialogue text."
)
_BODY, _EMBEDDINGS, _HEADS = "model.language_model.", "model.embedding_list.", "lm_heads."
_UNUSED = "model.language_model.embed_tokens.weight"  # the body is fed embeddings
_KEPT = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "max_position_embeddings",
    "rms_norm_eps",
    "attention_bias",
    "tie_word_embeddings",
)


def spec(tokenizer: Tokenizer) -> StreamSpec:
    """The family's spec; its prompts and marks are read from the published tokenizer.

    Raises:
        CheckpointError: the tokenizer lacks a mark.
    """

    def mark(token: str) -> int:
        found = tokenizer.token_to_id(token)
        if found is None:
            raise CheckpointError(f"the tokenizer has no {token}")
        return int(found)

    def ids(*parts: str) -> list[int]:
        """Ids of a text with marks in it."""
        found: list[int] = []
        for part in parts:
            is_mark = part.startswith("<|")
            found += [mark(part)] if is_mark else tokenizer.encode(part).ids
        return found

    before = ids("<|begin_of_style|>", STYLE, "<|end_of_style|>", "\n", "<|begin_of_text|>")
    after = ids("<|end_of_text|>", "\n")
    end_of_text = mark("<|endoftext|>")
    channels = [Stream(FIRST_SPEECH_ID, CODES, pad_id=end_of_text, delay=0)]
    for channel in range(1, CHANNELS):
        first = TEXT_VOCABULARY + (channel - 1) * (CODES + 1)
        channels.append(Stream(first, CODES, pad_id=first + CODES, delay=channel))
    return StreamSpec(
        family="moss-ttsd",
        vocab_size=TEXT_VOCABULARY + (CHANNELS - 1) * (CODES + 1),
        streams=tuple(channels),
        text=TextRange(0, TEXT_VOCABULARY, end_ids=()),
        audio_begin=mark("<|begin_of_speech|>"),
        audio_end_ids=(mark("<|end_of_speech|>"),),
        boundary="forced",
        min_frames=CHANNELS - 1,
        drain_id=end_of_text,
        head_bias="all",
        pad_embedding="pad",
        prompts={"audio": (*before, TEXT_SLOT, *after)},
        sampling={"audio": SamplingDefaults(1.0, 50)},
    )


def convert(checkpoint: Path, out: Path) -> None:
    """Writes a model directory, all but its codec; holds one shard and the tables in memory.

    Args:
        checkpoint: the published directory.
        out: created if it does not exist; files in it are overwritten.

    Raises:
        CheckpointError: the checkpoint is not one of MOSS-TTSD, or incomplete.
    """
    config = json.loads((checkpoint / CONFIG_FILE).read_text())
    shards = sorted(checkpoint.glob("*.safetensors"))
    if missing := [key for key in (*_KEPT, "rope_theta") if key not in config]:
        raise CheckpointError(f"{checkpoint / CONFIG_FILE}: no {', '.join(missing)}")
    (out / TOKENIZER_FILE).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint / "tokenizer.json", out / TOKENIZER_FILE)
    spec(Tokenizer.from_file(str(out / TOKENIZER_FILE))).save(out)

    tables: dict[str, dict[int, Tensor]] = defaultdict(dict)
    weight_map: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        body: dict[str, Tensor] = {}
        with safe_open(shard, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (not a mapping)
                kind = next((k for k in (_EMBEDDINGS, _HEADS) if name.startswith(k)), None)
                if kind is not None:
                    channel = int(name.removeprefix(kind).removesuffix(".weight"))
                    tables[kind][channel] = file.get_tensor(name)
                elif name.startswith(_BODY) and name != _UNUSED:
                    body["model." + name.removeprefix(_BODY)] = file.get_tensor(name)
                elif name != _UNUSED:
                    raise CheckpointError(f"{shard}: {name} is not known")
        target = f"model-{number:05}.safetensors"
        save_file(body, out / target, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(body, target)

    shared = {"model.embed_tokens.weight": _concatenated(tables[_EMBEDDINGS], _EMBEDDINGS)}
    if not config["tie_word_embeddings"]:
        shared["lm_head.weight"] = _concatenated(tables[_HEADS], _HEADS)
    embedding = shared["model.embed_tokens.weight"]
    shared[STREAM_EMBEDDING] = torch.zeros(CHANNELS, embedding.shape[1], dtype=embedding.dtype)
    save_file(shared, out / "tables.safetensors", metadata={"format": "pt"})
    weight_map |= dict.fromkeys(shared, "tables.safetensors")
    (out / WEIGHTS_INDEX_FILE).write_text(json.dumps({"weight_map": weight_map}, indent=1) + "\n")
    _write_config(config, embedding, out)


def _concatenated(channels: dict[int, Tensor], name: str) -> Tensor:
    """All channels' tables as one."""
    sizes = [TEXT_VOCABULARY, *[CODES + 1] * (CHANNELS - 1)]
    found = {channel: len(table) for channel, table in sorted(channels.items())}
    if found != dict(enumerate(sizes)):
        raise CheckpointError(f"{name}* has {found} rows, not {sizes}")
    return torch.cat([channels[channel] for channel in range(CHANNELS)])


def _write_config(config: dict[str, Any], embedding: Tensor, out: Path) -> None:
    ours = {key: config[key] for key in _KEPT} | {
        "architectures": ["SpeechLM"],
        "backbone_architecture": "Qwen3ForCausalLM",
        "model_type": "qwen3",
        "vocab_size": len(embedding),
        "rope_parameters": {"rope_type": "default", "rope_theta": config["rope_theta"]},
        "dtype": str(embedding.dtype).removeprefix("torch."),
    }
    (out / CONFIG_FILE).write_text(json.dumps(ours, indent=1) + "\n")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=convert.__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    convert(options.checkpoint, options.out)


if __name__ == "__main__":
    main()
