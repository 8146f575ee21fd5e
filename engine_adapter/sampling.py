"""Temperature, top-k, top-p and seeded noise for many rows and streams at once.

The definition is docs/generation.md. One noise value per kept candidate decides, so
the draw is a pure function of logits, parameters, seed, step, stream and id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine_adapter.noise import gumbel
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.upload import uploaded

# Below it ``logits / temperature`` leaves float32; the draw is the largest logit anyway.
_GREEDY_BELOW = 1e-5
_SORTED_WIDTH = 2048  # candidates up to which sorting all beats selecting some, on CPUs
_NETWORK_WIDTH = 256
_PARAMS = np.dtype(
    [("temperature", np.float32), ("top_k", np.int32), ("top_p", np.float32), ("seed", np.int64)]
)


class SamplingTable:
    """Sampling parameters of every slot, one table per modality."""

    def __init__(self, slots: int) -> None:
        self._params = np.zeros(slots, dtype=_PARAMS)

    def grow(self, slots: int) -> None:
        """Makes room for ``slots`` slots; the present ones keep their parameters."""
        params = np.zeros(slots, dtype=_PARAMS)
        params[: len(self._params)] = self._params
        self._params = params

    def put(self, slot: int, sampling: SamplingDefaults, seed: int) -> None:
        """Sets a slot. Greedy is the top candidate alone, so it needs no path of its own."""
        greedy = sampling.temperature < _GREEDY_BELOW
        self._params[slot] = (
            1.0 if greedy else sampling.temperature,
            1 if greedy else sampling.top_k,
            1.0 if greedy else sampling.top_p,
            seed,
        )

    def batch(self, slots: NDArray[np.int64], steps: NDArray[np.int32]) -> SamplingBatch:
        """The parameters of a batch, with each row's noise counter."""
        params = self._params[slots]
        return SamplingBatch(
            params["temperature"].copy(),
            params["top_k"].astype(np.int64),
            params["top_p"].copy(),
            params["seed"].copy(),
            steps.astype(np.int64),
        )


@dataclass(frozen=True)
class SamplingBatch:
    """Parameters of ``n`` rows on the host: float32 or int64 ``[n]`` each."""

    temperature: NDArray[np.float32]
    top_k: NDArray[np.int64]
    top_p: NDArray[np.float32]
    seed: NDArray[np.int64]
    step: NDArray[np.int64]

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What a draw needs on the device: all of them, ``[n, 1, 1]`` each."""
        fields = (self.temperature, self.top_k, self.top_p, self.seed, self.step)
        return tuple(field[:, None, None] for field in fields)

    def take(self, where: NDArray[np.int64]) -> SamplingBatch:
        """The rows at ``where``."""
        return SamplingBatch(
            self.temperature[where],
            self.top_k[where],
            self.top_p[where],
            self.seed[where],
            self.step[where],
        )


def sample(
    logits: Tensor,
    ids: Tensor,
    batch: SamplingBatch,
    first_stream: int = 0,
    there: Sequence[Tensor] | None = None,
) -> Tensor:
    """Draws one id per row and stream.

    Args:
        logits: float32 ``[n, streams, candidates]``, -inf where a candidate is masked.
        ids: int64 ``[streams, candidates]``, the candidates' vocabulary ids.
        batch: parameters of the ``n`` rows.
        first_stream: number of the first stream in ``logits``, for the noise.
        there: the batch's ``arrays`` where the logits are; None: they are brought there.

    Returns:
        int64 ``[n, streams]``.
    """
    width = logits.shape[-1]
    if there is None:
        there = uploaded(batch.arrays, logits.device)
    unfiltered = (batch.top_k == 0) | (batch.top_k >= width)
    if not unfiltered.any():
        return _draw(logits, ids, batch, there, first_stream, int(batch.top_k.max()))
    if unfiltered.all():
        return _draw(logits, ids, batch, there, first_stream, width)
    drawn = torch.empty(logits.shape[:2], dtype=torch.int64, device=logits.device)
    for mask in (unfiltered, ~unfiltered):
        where = np.flatnonzero(mask)
        (rows,) = uploaded([where], logits.device)
        part = batch.take(where)
        kept = width if mask is unfiltered else int(part.top_k.max())
        parameters = [values[rows] for values in there]
        drawn[rows] = _draw(logits[rows], ids, part, parameters, first_stream, kept)
    return drawn


def _largest(logits: Tensor, kept: int, ordered: bool) -> tuple[Tensor, Tensor]:
    """The ``kept`` largest and their places; of equal ones, the first places.

    Largest first, equal ones in order of place, if ``ordered``; in any order if not.

    ``topk`` leaves open which of several equal values it keeps: the choice would change
    with ``kept``, so with the rest of the batch. In float32, and wherever a candidate has a
    bias of its own, equal values are rare: on CPUs, where a selection among integers takes
    longer unless it is of all, they are looked for, and put in order only where they are found.
    """
    if logits.device.type != "cpu" or kept == logits.shape[-1]:
        return largest_by_key(logits, kept)
    if not ordered and logits.shape[-1] <= _SORTED_WIDTH:
        host = logits.numpy()
        least = kth_largest(host, kept)
        found = np.flatnonzero(host >= least)
        if len(found) == least.size * kept:
            found = found.reshape(-1, kept)
            found -= np.arange(0, host.size, host.shape[-1])[:, None]
            places = torch.from_numpy(found).view(*logits.shape[:-1], kept)
            return logits.gather(-1, places), places
    values, places = logits.topk(min(kept + 1, logits.shape[-1]), dim=-1)
    if not (values[..., 1:] == values[..., :-1]).any():
        return values[..., :kept], places[..., :kept]
    wanted = int((logits >= values[..., kept - 1 : kept]).sum(-1).max())
    places = logits.topk(wanted, dim=-1).indices.sort(dim=-1).values
    values = logits.gather(-1, places)
    order = values.argsort(dim=-1, descending=True, stable=True)[..., :kept]
    return values.gather(-1, order), places.gather(-1, order)


def kth_largest(values: NDArray[np.float32], kth: int) -> NDArray[np.float32]:
    """The ``kth`` largest along the last axis, ``[..., 1]``.

    numpy sorts with vector instructions, several times faster than a scalar topk; short rows by a
    network without a branch, again several times faster. So long ones are sorted in blocks, and
    then the largest of each.
    """
    *rows, width = values.shape
    blocks, rest = divmod(width, _NETWORK_WIDTH)
    if blocks * kth + rest <= width // 2:
        whole = values[..., : width - rest].reshape(*rows, blocks, _NETWORK_WIDTH)
        largest = np.sort(whole, axis=-1)[..., -kth:].reshape(*rows, blocks * kth)
        values = np.concatenate([largest, values[..., width - rest :]], axis=-1)
    found: NDArray[np.float32] = np.sort(values, axis=-1)[..., -kth, None]
    return found


def largest_by_key(logits: Tensor, kept: int) -> tuple[Tensor, Tensor]:
    """The same, largest first, in one selection that nobody has to wait for.

    A value and its place make one integer, so that no two are equal: the value's bits, which in
    their order are in that of the values, above the place's distance from the end.
    """
    bits = (logits + 0.0).view(torch.int32)  # -0 becomes 0, which it is equal to
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # negative ones count the other way
    width = logits.shape[-1]
    distance = torch.arange(width - 1, -1, -1, device=logits.device)
    places = ((bits.to(torch.int64) << 32) | distance).topk(kept, dim=-1).indices
    return logits.gather(-1, places), places


def _draw(
    logits: Tensor,
    ids: Tensor,
    batch: SamplingBatch,
    there: Sequence[Tensor],
    first_stream: int,
    kept: int,
) -> Tensor:
    """Draws among the ``kept`` largest candidates of every row and stream."""
    device, (n, streams, width) = logits.device, logits.shape
    temperature, top_k, top_p, seed, step = there
    nucleus = bool((batch.top_p < 1).any())
    ordered = nucleus or bool((batch.top_k != kept).any())
    if kept < width or nucleus:
        values, places = _largest(logits, kept, ordered)
        candidates = ids.expand(n, streams, width).gather(-1, places)
    else:
        values, candidates = logits, ids.expand(n, streams, width)
    scores = values / temperature
    if kept < width and ordered:
        beyond = torch.arange(kept, device=device) >= top_k
        scores = scores.masked_fill(beyond, float("-inf"))
    if nucleus:
        probabilities = scores.softmax(dim=-1)
        before = probabilities.cumsum(dim=-1) - probabilities
        # The first candidate has nothing before it; rows with top_p 1 keep everything.
        scores = scores.masked_fill((before >= top_p) & (top_p < 1), float("-inf"))
    stream = torch.arange(first_stream, first_stream + streams, device=device)[None, :, None]
    noise = gumbel(seed, step, stream, candidates)
    # A greedy row keeps one candidate, so noise cannot change it.
    chosen = (scores + noise).argmax(dim=-1, keepdim=True)
    return candidates.gather(-1, chosen).squeeze(-1)
