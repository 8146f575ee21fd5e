"""MOSS-TTSD (v0.5, v0.7) as a family that is data alone: docs/new-family.md tells what this does.

``python -m engine_adapter.moss_ttsd CHECKPOINT OUT`` makes a model directory of the published
one, all but ``codec/``.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from tokenizers import Tokenizer

from engine_adapter.checkpoint import (
    CONFIG_FILE,
    STREAM_EMBEDDING,
    TOKENIZER_FILE,
    CheckpointError,
)
from engine_adapter.conversion.shards import SHARD_BYTES, Entry, write_shards
from engine_adapter.id_ranges import Stream, TextRange
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import TEXT_SLOT, StreamSpec

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


class _Tensor(NamedTuple):
    """Where a tensor stands."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, file: Path, name: str) -> _Tensor:
        with safe_open(file, framework="pt") as opened:
            tensor = opened.get_slice(name)
            like = tensor[:0] if tensor.get_shape() else opened.get_tensor(name)
            return cls(file, name, tuple(tensor.get_shape()), like.dtype)

    def pieces(self) -> Iterator[memoryview]:
        with safe_open(self.file, framework="pt") as opened:
            tensor = opened.get_tensor(self.name)
        yield tensor.reshape(-1).view(torch.uint8).numpy().data


def convert(checkpoint: Path, out: Path, shard_bytes: int = SHARD_BYTES) -> None:
    """Writes a model directory, all but its codec; holds one tensor at a time.

    Args:
        checkpoint: the published directory.
        out: created if it does not exist; files in it are overwritten.
        shard_bytes: see ``write_shards``.

    Raises:
        CheckpointError: the checkpoint is not one of MOSS-TTSD, or incomplete.
    """
    config = json.loads((checkpoint / CONFIG_FILE).read_text())
    if missing := [key for key in (*_KEPT, "rope_theta") if key not in config]:
        raise CheckpointError(f"{checkpoint / CONFIG_FILE}: no {', '.join(missing)}")
    entries, tables = _body(checkpoint)
    embedding = tables[_EMBEDDINGS]
    entries.append(_concatenated("model.embed_tokens.weight", embedding, _EMBEDDINGS))
    if not config["tie_word_embeddings"]:
        entries.append(_concatenated("lm_head.weight", tables[_HEADS], _HEADS))
    width, dtype = embedding[0].shape[1], embedding[0].dtype
    zeros = bytes(CHANNELS * width * dtype.itemsize)
    entries.append(Entry(STREAM_EMBEDDING, (CHANNELS, width), dtype, lambda: [memoryview(zeros)]))

    (out / TOKENIZER_FILE).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint / "tokenizer.json", out / TOKENIZER_FILE)
    spec(Tokenizer.from_file(str(out / TOKENIZER_FILE))).save(out)
    write_shards(out, "model", entries, lambda _: None, shard_bytes)
    _write_config(config, dtype, out)


def _body(checkpoint: Path) -> tuple[list[Entry], dict[str, dict[int, _Tensor]]]:
    """The backbone's tensors, and the tables of the channels by kind and channel."""
    tables: dict[str, dict[int, _Tensor]] = defaultdict(dict)
    entries = []
    for shard in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(shard, framework="pt") as file:
            names = list(file.keys())
        for name in names:
            kind = next((k for k in (_EMBEDDINGS, _HEADS) if name.startswith(k)), None)
            tensor = _Tensor.of(shard, name)
            if kind is not None:
                channel = int(name.removeprefix(kind).removesuffix(".weight"))
                tables[kind][channel] = tensor
            elif name.startswith(_BODY) and name != _UNUSED:
                target = "model." + name.removeprefix(_BODY)
                entries.append(Entry(target, tensor.shape, tensor.dtype, tensor.pieces))
            elif name != _UNUSED:
                raise CheckpointError(f"{shard}: {name} is not known")
    return entries, tables


def _concatenated(target: str, channels: dict[int, _Tensor], name: str) -> Entry:
    """All channels' tables as one."""
    sizes = [TEXT_VOCABULARY, *[CODES + 1] * (CHANNELS - 1)]
    found = {channel: table.shape[0] for channel, table in sorted(channels.items())}
    if found != dict(enumerate(sizes)):
        raise CheckpointError(f"{name}* has {found} rows, not {sizes}")
    ordered = [channels[channel] for channel in range(CHANNELS)]
    shape = (sum(sizes), ordered[0].shape[1])
    return Entry(target, shape, ordered[0].dtype, partial(_pieces, ordered))


def _pieces(tensors: Sequence[_Tensor]) -> Iterator[memoryview]:
    for tensor in tensors:
        yield from tensor.pieces()


def _write_config(config: dict[str, Any], dtype: torch.dtype, out: Path) -> None:
    ours = {key: config[key] for key in _KEPT} | {
        "architectures": ["SpeechLM"],
        "backbone_architecture": "Qwen3ForCausalLM",
        "model_type": "qwen3",
        "vocab_size": TEXT_VOCABULARY + (CHANNELS - 1) * (CODES + 1),
        "rope_parameters": {"rope_type": "default", "rope_theta": config["rope_theta"]},
        "dtype": str(dtype).removeprefix("torch."),
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
