"""Centroids out of a file that joblib wrote of scikit-learn's k-means, without either.

Such a file is a pickle with arrays in between. Nothing in it is run: of all that it names only
NumPy's element types are what they are called, the rest are empty shells.
"""

import pickle
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

_CENTROIDS = "cluster_centers_"


def read_centroids(path: Path) -> NDArray[np.float32]:
    """Float32 [units, width].

    Raises:
        ValueError: the file is compressed, damaged, or has no centroids.
    """
    with path.open("rb") as file:
        if file.read(1) != pickle.PROTO:
            raise ValueError(f"{path}: is no uncompressed file of joblib's")
        file.seek(0)
        try:
            found = _Reader(file).load()
        except Exception as error:  # what a damaged pickle raises is anything
            raise ValueError(f"{path}: is damaged: {error}") from error
    state = getattr(found, "state", None)
    centroids = state.get(_CENTROIDS) if isinstance(state, dict) else None
    if not isinstance(centroids, np.ndarray) or centroids.ndim != 2:
        raise ValueError(f"{path}: has no {_CENTROIDS}")
    return centroids.astype(np.float32)


class _Shell:
    """Takes the place of any class or function, and keeps what it would be given."""

    state: Any = None

    def __init__(self, *arguments: object, **options: object) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Array(_Shell):
    """joblib's mark for an array whose elements follow."""

    def read(self, file: BinaryIO) -> NDArray[Any]:
        dtype, shape = self.state["dtype"], self.state["shape"]
        if dtype.hasobject:
            raise ValueError("an array of objects")
        if self.state.get("numpy_array_alignment_bytes") is not None:
            file.read(int.from_bytes(file.read(1), "little"))
        length = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        data = file.read(length)
        if len(data) != length:
            raise ValueError("it is cut off")
        return np.ndarray(shape, dtype, data, order=self.state["order"])


_Unpickler: Any = pickle._Unpickler  # the one that is written in Python


class _Reader(_Unpickler):
    dispatch: ClassVar[dict[int, Any]] = dict(_Unpickler.dispatch)

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._file = file

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numpy", "dtype"):
            return np.dtype
        return _Array if name == "NumpyArrayWrapper" else _Shell

    def load_build(self) -> None:
        super().load_build()
        if isinstance(self.stack[-1], _Array):
            self.stack.append(self.stack.pop().read(self._file))

    dispatch[pickle.BUILD[0]] = load_build
