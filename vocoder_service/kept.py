"""What is remembered of a stream between two calls of its decoder.

A decoder's state is some forty tensors, small ones for the most part. Kept as they are they would
be copied one by one, for each stream of a batch, which takes a GPU longer than to decode.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch

from vocoder_service.streaming import State


class _Leaf(NamedTuple):
    """A tensor of a state, for one stream."""

    dtype: torch.dtype
    shape: torch.Size


_Form: TypeAlias = _Leaf | list["_Form"]


@dataclass(frozen=True, eq=False)
class Kept:
    """One stream's part of a state, in memory of its own.

    Attributes:
        values: of each type of numbers, all of them, one tensor behind the other.
        form: how they are arranged.
    """

    values: dict[torch.dtype, torch.Tensor]
    form: _Form

    @property
    def bytes(self) -> int:
        """Memory that it takes."""
        return sum(values.untyped_storage().nbytes() for values in self.values.values())


def unstacked(state: State, count: int) -> list[Kept]:
    """What is remembered of each stream of a batch of ``count``."""
    rows: dict[torch.dtype, list[tuple[torch.Tensor, ...]]] = {}
    for leaf in _leaves(state):
        flat = leaf.flatten(1) if leaf.dim() > 1 else leaf[:, None]
        rows.setdefault(leaf.dtype, []).append(flat.unbind())
    form = _form(state)
    return [
        Kept({dtype: torch.cat([row[index] for row in of]) for dtype, of in rows.items()}, form)
        for index in range(count)
    ]


def stacked(kept: Sequence[Kept]) -> State:
    """The state of these streams as a batch; their forms are alike."""
    first = kept[0]
    parts: dict[torch.dtype, Iterator[torch.Tensor]] = {}
    for dtype, values in first.values.items():
        flat = torch.stack([k.values[dtype] for k in kept]) if len(kept) > 1 else values[None]
        sizes = [leaf.shape.numel() for leaf in _leaves_of(first.form) if leaf.dtype == dtype]
        parts[dtype] = iter(flat.split(sizes, dim=1))
    return _arranged(first.form, parts, len(kept))


def _leaves(state: State) -> Iterator[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        yield state
        return
    for part in state:
        yield from _leaves(part)


def _form(state: State) -> _Form:
    if isinstance(state, torch.Tensor):
        return _Leaf(state.dtype, state.shape[1:])
    return [_form(part) for part in state]


def _leaves_of(form: _Form) -> Iterator[_Leaf]:
    if isinstance(form, _Leaf):
        yield form
        return
    for part in form:
        yield from _leaves_of(part)


def _arranged(form: _Form, parts: dict[torch.dtype, Iterator[torch.Tensor]], count: int) -> State:
    if isinstance(form, _Leaf):
        return next(parts[form.dtype]).view(count, *form.shape)
    return tuple(_arranged(part, parts, count) for part in form)
