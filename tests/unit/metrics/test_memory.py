"""A failure for want of memory is known by its kind or by its text, and passed on."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from deployments.metrics import emit
from deployments.metrics.memory import is_shortage, shortage_counted
from deployments.metrics.sinks import PrometheusSink
from vocoder_service.service import DecodeError


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "shortage"),
    [
        (MemoryError(), True),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."), True),
        (DecodeError("a window was not decoded: CUDA out of memory."), True),
        (DecodeError("a window was not decoded: MemoryError: "), True),
        (DecodeError("a window was not decoded: RuntimeError: std::bad_alloc"), True),
        (caused(DecodeError("a window was not decoded"), MemoryError()), True),
        (ValueError("a code is out of range"), False),
        (caused(DecodeError("no"), ValueError("memory")), False),
    ],
)
def test_what_is_a_shortage_of_memory(error: Exception, shortage: bool) -> None:
    assert is_shortage(error) == shortage


def test_shortages_are_counted_by_part_and_passed_on() -> None:
    sink = PrometheusSink()
    with emit.using(sink, model="m"):
        with pytest.raises(MemoryError), shortage_counted("vocoder"):
            raise MemoryError
        with pytest.raises(ValueError, match="range"), shortage_counted("encoder"):
            raise ValueError("a code is out of range")
    name = "speechlm_out_of_memory_events_total"
    assert sink.registry.get_sample_value(name, {"model": "m", "part": "vocoder"}) == 1
    assert sink.registry.get_sample_value(name, {"model": "m", "part": "encoder"}) == 0


@pytest.mark.parametrize("allocate", [torch.empty, np.zeros])
def test_what_this_machine_says_is_known_as_text_too(allocate: Callable[[int], object]) -> None:
    """As it comes from another process."""
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        allocate(2**50)
    assert is_shortage(RuntimeError(f"a window was not decoded: {caught.value}"))
