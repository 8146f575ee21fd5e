"""How firm a decision was.

Two implementations of one definition round differently. A decision that hangs on a
difference of a millionth may then rightly go either way, and a test that demands equal
ids would be a matter of luck. The *margin* of a decision is the largest ``eps`` such that,
however every logit (guided, before the temperature) is moved by at most ``eps``, each on
its own, the same id is drawn. It is a lower bound, and exact but for the last point:

- *Rivals.* Candidate ``i`` may overtake the winner ``w`` if ``T (score_w - score_i) <= 2 eps``
  and it may be in the kept set. (Greedy: scores are logits, ``T`` is 1, all are kept.)
- *Kept or not* depends on a candidate's rank and on how many ranks are kept. The ``r``-th
  largest logit moves by at most ``eps``, so a candidate with logit ``l`` may stand at rank
  ``r`` if ``l`` is within ``2 eps`` of the ``r``-th largest now.
- *Ranks kept.* ``top_k`` keeps a fixed number. For ``top_p``, the probability ``c`` before a
  rank is ``A / (A + B)`` with sums ``A``, ``B`` of ``exp(logit / T)``; each sum changes by a
  factor within ``exp(+-eps / T)``, so ``log(c / (1 - c))`` moves by at most ``2 eps / T``, and
  the rank may change sides if ``top_p`` lies in that range. ``c`` itself is a float32 sum;
  the range is widened by the rounding of one.
- *The winner* may fall out if its worst possible rank may be dropped.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tests.reference.sample import Draw, Sampling

_ROUNDING = 5e-6  # of a float32 sum of probabilities over a whole vocabulary
_STEPS = 24  # of bisection, of a range that no smaller margin has cut short


def margin(logits: Tensor, draw: Draw, sampling: Sampling, at_most: float) -> float:
    """The margin of a decision, in logits.

    Args:
        logits: float32 ``[C]`` of the allowed candidates.
        draw: what was drawn from them.
        sampling: how.
        at_most: returned for every margin that is not smaller.
    """
    scale = sampling.temperature or 1.0
    scores = draw.scores.double()
    overtakes = (scores[draw.index] - scores) * (scale / 2)
    overtakes[draw.index] = float("inf")
    upper = min(at_most, float(overtakes[draw.kept].min()))
    if bool(draw.kept.all()) and sampling.top_p >= 1:
        return upper

    exact = logits.double()
    keeps, drops, largest = _ranks(exact, sampling)
    near = overtakes <= upper  # of the others none can matter
    rival_logits, rival_overtakes = exact[near], overtakes[near]
    winner_logit = exact[draw.index]

    def may_change(eps: float) -> bool:
        surely_kept = int((drops > eps).sum())
        fallen = surely_kept < len(exact) and winner_logit - 2 * eps <= largest[surely_kept]
        last_kept = largest[int((keeps <= eps).sum()) - 1]
        rivals = (rival_logits >= last_kept - 2 * eps) & (rival_overtakes <= eps)
        return bool(fallen) or bool(rivals.any())

    if not may_change(upper):
        return upper
    lower = 0.0
    for _ in range(_STEPS):
        middle = (lower + upper) / 2
        if may_change(middle):
            upper = middle
        else:
            lower = middle
    return lower


def _ranks(logits: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor, Tensor]:
    """For each rank that ``top_k`` keeps, ``[k]``: the eps from which ``top_p`` may keep it,
    and the eps from which it may drop it; and the ``k + 1`` (or all) largest logits."""
    count = len(logits)
    k = sampling.top_k if 0 < sampling.top_k < count else count
    largest = logits.topk(min(k + 1, count)).values
    if sampling.top_p >= 1:
        return torch.zeros(k), torch.full((k,), float("inf")), largest
    before = (largest[:k] / sampling.temperature).softmax(0).cumsum(0).roll(1)
    before[0] = 0
    limit = torch.tensor(sampling.top_p, dtype=torch.float64).logit()
    half = sampling.temperature / 2
    keeps = (half * ((before - _ROUNDING).clamp(0, 1).logit() - limit)).clamp(min=0)
    drops = (half * (limit - (before + _ROUNDING).clamp(0, 1).logit())).clamp(min=0)
    drops[0] = float("inf")
    return keeps, drops, largest
