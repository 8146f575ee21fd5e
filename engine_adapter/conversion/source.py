"""A torch checkpoint whose tensors are read piece by piece, never as a whole."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from engine_adapter.conversion.errors import ConversionError

_PIECE = 1 << 24  # bytes; a multiple of every element's size
_ENVELOPES = ("module", "model")  # what DeepSpeed and ESPnet put around a state dict
_ZIP_MAGIC, _PICKLE_MAGIC = b"PK", b"\x80"


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor stands in its file.

    Attributes:
        shape: of the tensor.
        dtype: of its elements.
        offset: of its first element, in bytes.
        stride: elements from one index to the next, per dimension.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int
    stride: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many it has."""
        return torch.Size(self.shape).numel()

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements stand in the file in order, without gaps."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return True

    def rows(self, first: int, end: int) -> StoredTensor:
        """Its rows ``first`` to ``end - 1``, as far as there are any."""
        shape = (min(end, self.shape[0]) - first, *self.shape[1:])
        start = self.offset + first * self.stride[0] * self.dtype.itemsize
        return replace(self, shape=shape, offset=start)

    def converted(self, dtype: torch.dtype | None) -> torch.dtype:
        """The dtype it is written in where floating point is to be ``dtype``; None: as it is."""
        return dtype if dtype is not None and self.dtype.is_floating_point else self.dtype


class TorchCheckpoint:
    """The state dict of a file written by ``torch.save``.

    Attributes:
        path: the file.
        tensors: by name.
        others: names of the entries that are no tensors.
    """

    def __init__(self, path: str | Path) -> None:
        """Reads names, shapes and places; no tensor.

        Raises:
            ConversionError: the file is missing, damaged, or no torch checkpoint.
        """
        self.path = Path(path)
        _check_is_zip(self.path)
        state = _state_dict(self.path)
        self.tensors = {n: _stored(t) for n, t in state.items() if isinstance(t, Tensor)}
        self.others = tuple(str(n) for n, t in state.items() if not isinstance(t, Tensor))
        self._replaced: dict[str, tuple[int, StoredTensor]] = {}
        if not self.tensors:
            raise ConversionError(f"{self.path}: holds no tensors")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all tensors, by name."""
        return {name: tensor.shape for name, tensor in self.tensors.items()}

    def pieces(self, name: str, dtype: torch.dtype | None = None) -> Iterator[memoryview]:
        """The bytes of a tensor in C order, in small pieces.

        Args:
            name: of the tensor.
            dtype: of floating-point elements; None: as they are.

        Raises:
            ConversionError: the file ends before the tensor does.
        """
        stored = self.tensors[name]
        if name not in self._replaced:
            yield from self._pieces(stored, dtype)
            return
        row, rows = self._replaced[name]
        yield from self._pieces(stored.rows(0, row), dtype)
        yield from self._pieces(rows, dtype)
        yield from self._pieces(stored.rows(row + rows.shape[0], stored.shape[0]), dtype)

    def replace_rows(self, name: str, row: int, other: str) -> None:
        """Puts the rows of a tensor in the place of those of ``name`` from ``row`` on. It is no
        tensor of its own any more.

        Raises:
            ConversionError: their shapes or dtypes do not allow it.
        """
        whole, rows = self.tensors[name], self.tensors[other]
        fits = whole.is_contiguous and len(whole.shape) == len(rows.shape) == 2
        if (
            not fits
            or whole.dtype != rows.dtype
            or whole.shape[1] != rows.shape[1]
            or row + rows.shape[0] > whole.shape[0]
        ):
            raise ConversionError(
                f"{other}, {list(rows.shape)}, does not fit into {name}, {list(whole.shape)}"
            )
        del self.tensors[other]
        self._replaced[name] = row, rows

    def _pieces(self, stored: StoredTensor, dtype: torch.dtype | None) -> Iterator[memoryview]:
        with self.path.open("rb") as file:
            file.seek(stored.offset)
            if stored.is_contiguous:
                left = stored.elements * stored.dtype.itemsize
                while left:
                    elements = self._read(file, min(left, _PIECE), stored.dtype)
                    left -= elements.nbytes
                    yield _bytes(elements.to(stored.converted(dtype)))
            elif stored.elements:
                reach = sum((n - 1) * s for n, s in zip(stored.shape, stored.stride, strict=True))
                elements = self._read(file, (reach + 1) * stored.dtype.itemsize, stored.dtype)
                ordered = elements.as_strided(stored.shape, stored.stride).contiguous()
                yield _bytes(ordered.to(stored.converted(dtype)))

    def _read(self, file: BinaryIO, length: int, dtype: torch.dtype) -> Tensor:
        data = bytearray(length)
        if file.readinto(data) != length:  # type: ignore[attr-defined]
            raise ConversionError(f"{self.path}: is truncated")
        return torch.frombuffer(data, dtype=dtype)


def _check_is_zip(path: Path) -> None:
    if not path.is_file():
        raise ConversionError(f"{path}: no such file")
    with path.open("rb") as file:
        magic = file.read(2)
    if not zipfile.is_zipfile(path):
        if magic == _ZIP_MAGIC:
            raise ConversionError(f"{path}: is truncated or damaged")
        if magic[:1] == _PICKLE_MAGIC:
            raise ConversionError(
                f"{path}: is a torch file of the format before 1.6, or a pickle; load it and save "
                "it again with torch.save"
            )
        raise ConversionError(f"{path}: is not a torch file")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ConversionError(f"{path}: is truncated or damaged") from error
    if not any(entry.filename.endswith("/data.pkl") for entry in entries):
        raise ConversionError(f"{path}: is not a torch file")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ConversionError(f"{path}: is a compressed archive, which torch.save does not write")


def _state_dict(path: Path) -> dict[str, Any]:
    try:
        with FakeTensorMode():  # shapes and offsets, but no data
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ConversionError(
            f"{path}: holds objects beside tensors, which are not loaded since they could run "
            "code; save the state dict alone"
        ) from error
    except Exception as error:  # torch's unpickler raises whatever a damaged file leads it to
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConversionError(f"{path}: is damaged: {first_line}") from error
    for envelope in _ENVELOPES:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(envelope), Mapping):
            loaded = loaded[envelope]
    if not isinstance(loaded, Mapping):
        raise ConversionError(f"{path}: holds a {type(loaded).__name__}, not a state dict")
    return dict(loaded)


def _stored(tensor: Tensor) -> StoredTensor:
    # Set under FakeTensorMode, as torch's notes on serialization say.
    first = tensor.untyped_storage()._checkpoint_offset
    assert first is not None
    offset = first + int(tensor.storage_offset()) * tensor.dtype.itemsize
    return StoredTensor(tuple(tensor.shape), tensor.dtype, offset, tuple(tensor.stride()))


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data
