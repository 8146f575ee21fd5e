"""The number of replicas: what raises it, what lowers it, and what it comes to."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfg_pairing.autoscaling import ReplicaSignals, ScalingPolicy, ScalingState, decide
from tests.unit.cfg_pairing.scaling_simulator import (
    ROWS,
    Arrival,
    Decide,
    Outcome,
    ours,
    serves_default,
    simulate,
)

POLICY = ScalingPolicy(min_replicas=1, max_replicas=10, up_seconds=3)
IDLE = ReplicaSignals(rows=0, waiting_rows=0, capacity=16)


def run(
    signals: Callable[[int], Sequence[ReplicaSignals]],
    seconds: int,
    *,
    policy: ScalingPolicy = POLICY,
    target: int = 1,
    homeless: float = 0,
) -> list[int]:
    """Decisions of every second."""
    state: ScalingState | None = None
    decisions = []
    for now in range(seconds):
        target, state = decide(policy, signals(now), homeless, target, now, state)
        decisions.append(target)
    return decisions


def steady(rows: float, replicas: int) -> Callable[[int], Sequence[ReplicaSignals]]:
    """So many rows all the time, evenly spread."""
    signals = [replace(IDLE, rows=rows / replicas)] * replicas
    return lambda now: signals


def test_rows_are_what_counts() -> None:
    busy = replace(IDLE, rows=20)
    decisions = run(lambda now: [busy, busy], 10, target=2)
    assert decisions[:3] == [2] * 3, "not at once"
    assert decisions[-1] == math.ceil(40 / (16 * 0.8))


def test_a_moment_of_need_changes_nothing() -> None:
    decisions = run(lambda now: [replace(IDLE, rows=20 if now % 3 else 8)], 60)
    assert set(decisions) == {1}


def test_between_the_two_uses_nothing_changes() -> None:
    # Two are enough for less than 22.4 rows; three are wanted from 25.6.
    for target, rows, then in ((2, 25, 2), (3, 23, 3), (3, 22, 2), (2, 26, 3)):
        decisions = run(steady(rows, target), 300, target=target)
        assert decisions[-1] == then


def test_requests_that_wait_are_helped_though_rows_are_few() -> None:
    stuck = replace(IDLE, rows=8, waiting_rows=2, queue_age=5)
    assert run(lambda now: [stuck], 10)[-1] == 2
    # Three rows have filled the memory.
    full = replace(IDLE, rows=20, waiting_rows=17, queue_age=5)
    assert run(lambda now: [full], 10)[-1] == 1 + math.ceil(17 / 16)


def test_no_more_come_while_those_that_were_asked_for_start() -> None:
    waits = replace(IDLE, rows=20, waiting_rows=4, queue_age=5)
    assert max(run(lambda now: [waits], 600)) == 2


def test_audio_that_is_owed_counts() -> None:
    # Twelve rows would do, but they are to speak for ten minutes each.
    long = replace(IDLE, rows=12, audio_owed=12 * 600, audio_rate=64)
    assert run(lambda now: [long], 10)[-1] == math.ceil(12 * 600 / (64 * 30))


def test_what_was_needed_is_kept_for_a_while() -> None:
    quiet, busy = replace(IDLE, rows=2), replace(IDLE, rows=12)
    decisions = run(lambda now: [busy if 90 <= now < 120 else quiet] * 4, 400, target=4)
    assert set(decisions[: 90 + int(POLICY.down_seconds)]) == {4}
    assert decisions[-1] == 1


def test_the_last_one_stays_unless_it_may_go() -> None:
    assert run(lambda now: [IDLE], 2000)[-1] == 1
    to_zero = replace(POLICY, min_replicas=0, idle_seconds=600)
    decisions = run(lambda now: [IDLE], 2000, policy=to_zero)
    assert decisions.index(0) == 600


def test_the_first_request_brings_one_back_at_once() -> None:
    to_zero = replace(POLICY, min_replicas=0)
    assert run(lambda now: [], 3, policy=to_zero, target=0, homeless=1) == [1, 1, 1]


def test_a_replica_that_has_just_come_is_not_sent_away_idle() -> None:
    """Whoever asked for it may have been told to come back when it is there."""
    to_zero = replace(POLICY, min_replicas=0, idle_seconds=100)
    state: ScalingState | None = None
    target, state = decide(to_zero, [], 1, 0, 0, state)
    for now in range(1, 100):
        target, state = decide(to_zero, [], 0, target, now, state)
        assert target == 1
    target, state = decide(to_zero, [], 0, target, 400, state)
    assert target == 0


@given(
    st.lists(
        st.tuples(st.floats(0, 200), st.floats(0, 50), st.floats(0, 20), st.floats(0, 1e4)),
        min_size=1,
        max_size=60,
    ),
    st.integers(0, 3),
)
def test_the_bounds_hold_whatever_is_said(
    said: list[tuple[float, float, float, float]], least: int
) -> None:
    policy = ScalingPolicy(min_replicas=least, max_replicas=5, idle_seconds=20)
    target, state = max(1, least), None
    for now, (rows, waiting, age, owed) in enumerate(said):
        signal = ReplicaSignals(rows, min(rows, waiting), 16, age, owed, audio_rate=30)
        decided, state = decide(policy, [signal] * target, 0, target, 5.0 * now, state)
        assert least <= decided <= 5
        if decided == 0:
            assert rows == 0
        target = decided


# What it comes to


def poisson(random: Random, rate: float) -> int:
    limit, product, count = math.exp(-rate), random.random(), 0
    while product > limit:
        product *= random.random()
        count += 1
    return count


def trace(
    rate: Callable[[int], float], hours: float, guided: float, seconds: float = 8
) -> list[Arrival]:
    """Requests at random.

    Args:
        rate: requests per second, at a second.
        guided: share of them.
        seconds: that they take on average.
    """
    random = Random(0)
    return [
        Arrival(
            second,
            2 if random.random() < guided else 1,
            max(1, round(random.expovariate(1 / seconds))),
        )
        for second in range(int(hours * 3600))
        for _ in range(poisson(random, rate(second)))
    ]


def recorded() -> list[Arrival]:
    """Requests as they came to a service, speaking as fast as one listens (the file says where)."""
    file = Path(__file__).with_name("recorded_arrivals.json")
    return [
        Arrival(int(second), 2 if guided else 1, math.ceil(frames / 50))
        for second, guided, frames in json.loads(file.read_text())["arrivals"]
    ]


def wave(height: float) -> Callable[[int], float]:
    """A day of two hours."""
    return lambda second: height * (1 - math.cos(second * math.pi / 3600)) + 0.1


TRACES = {
    "bursts": trace(lambda second: 4 if second % 1200 < 240 else 0.5, 1.5, guided=0.3),
    "diurnal": trace(wave(1.5), 2, guided=0.3),
    "guided-heavy": trace(wave(0.8), 2, guided=0.95),
    "long": trace(wave(0.15), 2, guided=0.5, seconds=60),
    "recorded": recorded(),
}


def total(make: Callable[[], Decide]) -> Outcome:
    """Of all traces, each with a policy of its own."""
    outcomes = [simulate(arrivals, make()) for arrivals in TRACES.values()]
    return Outcome(
        sum(outcome.requests for outcome in outcomes),
        sum(outcome.misses for outcome in outcomes),
        sum(outcome.replica_hours for outcome in outcomes),
        sum(outcome.changes for outcome in outcomes),
    )


@pytest.fixture(scope="module")
def with_ours() -> Outcome:
    return total(lambda: ours(ScalingPolicy(max_replicas=20)))


@pytest.mark.parametrize("ongoing", [6, ROWS / 2, 0.8 * ROWS])
def test_fewer_misses_at_no_more_replica_hours(with_ours: Outcome, ongoing: float) -> None:
    """Than Serve's policy with its own delays, whether or not it reckons with guidance."""
    default = total(lambda: serves_default(ongoing, 20))
    assert with_ours.misses < default.misses
    assert with_ours.replica_hours <= default.replica_hours


@pytest.mark.parametrize("ongoing", [6, ROWS / 2, 0.8 * ROWS])
def test_bursts_shorter_than_a_start_cost_no_more(ongoing: float) -> None:
    """Nobody can help those whose burst is over before a replica has started."""
    mine = simulate(TRACES["recorded"], ours(ScalingPolicy(max_replicas=20)))
    default = simulate(TRACES["recorded"], serves_default(ongoing, 20))
    assert mine.misses <= default.misses
    assert mine.replica_hours <= default.replica_hours


def test_with_our_delays_the_default_is_no_better_in_both(with_ours: Outcome) -> None:
    quick = total(lambda: serves_default(ROWS / 2, 20, up_seconds=10, down_seconds=180))
    assert with_ours.misses < quick.misses
    assert with_ours.replica_hours <= 1.1 * quick.replica_hours
