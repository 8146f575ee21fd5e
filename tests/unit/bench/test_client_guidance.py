"""Mixing candidates on the client."""

import random
from collections import Counter

from bench.client_guidance import choose


def test_guidance_moves_away_from_the_unconditional_favourite() -> None:
    conditional, unconditional = {1: -0.7, 2: -0.7}, {1: -0.1, 2: -3.0}
    drawn = Counter(
        choose(conditional, unconditional, 2.0, 0.5, random.Random(seed)) for seed in range(200)
    )
    assert drawn[2] > 190


def test_a_missing_candidate_counts_as_the_least_likely() -> None:
    # Unknown to the unconditional context, so it gains most from guidance.
    drawn = {
        choose({1: -1.0, 2: -1.0}, {1: -0.1, 3: -9.0}, 3.0, 0.1, random.Random(seed))
        for seed in range(50)
    }
    assert drawn == {2}


def test_scale_one_is_the_conditional_distribution() -> None:
    drawn = Counter(
        choose({1: -0.2, 2: -1.7}, {1: -5.0, 2: -0.1}, 1.0, 1.0, random.Random(seed))
        for seed in range(2000)
    )
    assert 0.78 < drawn[1] / 2000 < 0.86  # exp(-0.2) / (exp(-0.2) + exp(-1.7)) = 0.82
