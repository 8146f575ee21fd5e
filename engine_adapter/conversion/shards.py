"""Safetensors files, written tensor by tensor."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

SHARD_BYTES = 4_000_000_000
# Names of dtypes in the safetensors format.
_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
WRITABLE = frozenset(_NAMES)


@dataclass(frozen=True)
class Entry:
    """A tensor to be written.

    Attributes:
        name: of the tensor.
        shape: of the tensor.
        dtype: one of ``WRITABLE``.
        pieces: gives its bytes, in C order, little endian.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: Callable[[], Iterable[memoryview]]

    @property
    def nbytes(self) -> int:
        """Its length in the file."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize


def write_shards(
    folder: Path,
    stem: str,
    entries: Sequence[Entry],
    advance: Callable[[int], object],
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Writes ``STEM.safetensors``, or several such files and their index.

    Args:
        folder: which exists.
        stem: of the names of the files.
        entries: in the order in which they are written.
        advance: is told how many bytes have just been written.
        shard_bytes: of a file's tensors at most, unless one alone is larger.
    """
    shards = split(entries, shard_bytes)
    if len(shards) == 1:
        _write(folder / f"{stem}.safetensors", entries, advance)
        return
    weight_map = {}
    for number, shard in enumerate(shards, start=1):
        name = f"{stem}-{number:05d}-of-{len(shards):05d}.safetensors"
        _write(folder / name, shard, advance)
        weight_map.update({entry.name: name for entry in shard})
    index = {
        "metadata": {"total_size": sum(entry.nbytes for entry in entries)},
        "weight_map": weight_map,
    }
    (folder / f"{stem}.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")


def split(entries: Sequence[Entry], shard_bytes: int) -> list[list[Entry]]:
    """Entries in order, as many in a shard as fit, at least one; one shard if there are none."""
    shards: list[list[Entry]] = [[]]
    filled = 0
    for entry in entries:
        if shards[-1] and filled + entry.nbytes > shard_bytes:
            shards.append([])
            filled = 0
        shards[-1].append(entry)
        filled += entry.nbytes
    return shards


def _write(path: Path, entries: Sequence[Entry], advance: Callable[[int], object]) -> None:
    # Readers want every tensor at a multiple of its element's size.
    aligned = sorted(entries, key=lambda entry: -entry.dtype.itemsize)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for entry in aligned:
        header[entry.name] = {
            "dtype": _NAMES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [end, end := end + entry.nbytes],
        }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # the data begin at a multiple of 8
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for entry in aligned:
            for piece in entry.pieces():
                file.write(piece)
                advance(len(piece))
