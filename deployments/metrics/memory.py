"""Requests that fail for want of memory, whatever the error looks like that says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from deployments.metrics import definitions as d
from deployments.metrics import emit

# Of CUDA, of PyTorch's allocator on CPUs, of NumPy, of C++, and of Python's own error.
_WORDS = "out of memory", "can't allocate memory", "unable to allocate", "bad_alloc", "memoryerror"


@contextmanager
def shortage_counted(part: Literal["vocoder", "encoder"]) -> Iterator[None]:
    """Counts the block's failure if it is one of memory; the error goes on."""
    try:
        yield
    except Exception as error:
        if is_shortage(error):
            emit.add(d.OUT_OF_MEMORY, part=part)
        raise


def is_shortage(error: BaseException) -> bool:
    """Whether there was not enough memory, of the machine or of a GPU.

    An error of another process comes as the text of one, so texts count too.
    """
    text = str(error).lower()
    if isinstance(error, MemoryError) or any(words in text for words in _WORDS):
        return True
    return error.__cause__ is not None and is_shortage(error.__cause__)
