"""One copy brings several arrays to the device, each as it was."""

from __future__ import annotations

import numpy as np
import torch

from engine_adapter.upload import Array, pack, unpack, uploaded

ARRAYS: list[Array] = [
    np.array([3, -(2**62)]),
    np.array([True, False, True]),
    np.array([[0.5, -1e-30], [1e30, 7]], dtype=np.float32),
    np.empty((0, 4), dtype=np.int32),
    np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::2],
]


def check(tensors: list[torch.Tensor]) -> None:
    for tensor, array in zip(tensors, ARRAYS, strict=True):
        assert tensor.cpu().numpy().dtype == array.dtype
        np.testing.assert_array_equal(tensor.cpu().numpy(), array)


def test_arrays_survive_their_way() -> None:
    packed = np.empty(200, dtype=np.uint8)
    pack(ARRAYS, packed)
    check(unpack(torch.from_numpy(packed), ARRAYS))


def test_on_a_cpu_nothing_is_copied() -> None:
    tensors = uploaded(ARRAYS, torch.device("cpu"))
    check(tensors)
    tensors[0][0] = 8
    assert ARRAYS[0][0] == 8
    tensors[0][0] = 3


def test_on_a_gpu_they_come_together() -> None:
    for index in range(torch.cuda.device_count()):
        check(uploaded(ARRAYS, torch.device("cuda", index)))
