"""The limiter's rules, with the time given by the test."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deployments.guards.limits import (
    Denied,
    Granted,
    Kind,
    LeaseReport,
    Limiter,
    Unknown,
)
from deployments.guards.settings import ClientLimits
from deployments.guards.usage import Usage

DAY = 86_400.0
NOON = 20_000 * DAY + DAY / 2


def request(
    lease: str, client: str = "alice", kind: Kind = "request", *, makes_audio: bool = True
) -> LeaseReport:
    return LeaseReport(lease, client, kind, makes_audio)


@pytest.fixture
def usage() -> Iterator[Usage]:
    usage = Usage(None)
    yield usage
    usage.close()


@pytest.fixture
def limiter(usage: Usage) -> Limiter:
    """One that knows two front ends, ``a`` and ``b``."""
    limiter = Limiter(usage, reserve_seconds=30, lease_seconds=10)
    for front_end in "ab":
        limiter.report(front_end, [], [], NOON)
    return limiter


def test_a_front_end_must_report_before_it_gets_a_lease(limiter: Limiter) -> None:
    assert limiter.acquire("new", request("1"), ClientLimits(), NOON) == Unknown()
    limiter.report("new", [], [], NOON)
    assert limiter.acquire("new", request("1"), ClientLimits(), NOON) == Granted()


def test_concurrent_requests_are_counted_over_all_front_ends(limiter: Limiter) -> None:
    limits = ClientLimits(concurrent_requests=2)
    assert limiter.acquire("a", request("1"), limits, NOON) == Granted()
    assert limiter.acquire("b", request("2"), limits, NOON) == Granted()
    denied = Denied("concurrent_requests", 2, None)
    assert limiter.acquire("a", request("3"), limits, NOON) == denied
    assert limiter.acquire("a", request("4", "bob"), limits, NOON) == Granted()
    limiter.report("b", [], [request("2")], NOON)
    assert limiter.acquire("a", request("3"), limits, NOON) == Granted()


def test_websockets_have_a_limit_of_their_own(limiter: Limiter) -> None:
    limits = ClientLimits(websockets=1, concurrent_requests=1)
    assert limiter.acquire("a", request("1", kind="websocket"), limits, NOON) == Granted()
    assert limiter.acquire("a", request("2"), limits, NOON) == Granted()
    again = limiter.acquire("a", request("3", kind="websocket"), limits, NOON)
    assert again == Denied("websockets", 1, None)


def test_the_rate_allows_a_burst_and_says_when_the_next_request_may_come(
    limiter: Limiter,
) -> None:
    limits = ClientLimits(requests_per_second=2, burst=3)
    for lease in "123":
        assert limiter.acquire("a", request(lease), limits, NOON) == Granted()
    denied = limiter.acquire("b", request("4"), limits, NOON)
    assert denied == Denied("requests_per_second", 2, 0.5)
    assert isinstance(limiter.acquire("b", request("4"), limits, NOON + 0.4), Denied)
    assert limiter.acquire("b", request("4"), limits, NOON + 0.5) == Granted()


@given(
    rate=st.floats(0.1, 50),
    burst=st.integers(1, 20),
    waits=st.lists(st.floats(0, 3), max_size=100),
)
def test_in_no_interval_more_pass_than_rate_and_burst_allow(
    rate: float, burst: int, waits: list[float]
) -> None:
    limiter = Limiter(Usage(None), 30, lease_seconds=1e9)
    limiter.report("a", [], [], NOON)
    limits = ClientLimits(requests_per_second=rate, burst=burst)
    now, passed = NOON, []
    for number, wait in enumerate(waits):
        now += wait
        decision = limiter.acquire("a", request(str(number)), limits, now)
        if decision == Granted():
            passed.append(now)
        else:
            assert isinstance(decision, Denied)
            assert decision.retry_after is not None
            assert decision.retry_after > 0
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            most = burst + rate * (passed[last] - passed[first])
            assert last - first + 1 <= most + 1e-3


def test_a_clock_that_is_set_back_gives_nothing_away(limiter: Limiter) -> None:
    limits = ClientLimits(requests_per_second=1)
    assert limiter.acquire("a", request("1"), limits, NOON) == Granted()
    assert isinstance(limiter.acquire("a", request("2"), limits, NOON - 5), Denied)


def test_the_audio_of_a_day_is_what_was_made_and_ends_at_midnight(limiter: Limiter) -> None:
    limits = ClientLimits(audio_seconds_per_day=60)
    assert limiter.acquire("a", request("1"), limits, NOON) == Granted()
    limiter.report("a", [], [replace(request("1"), seconds=61)], NOON)
    denied = limiter.acquire("a", request("2"), limits, NOON)
    assert denied == Denied("audio_seconds_per_day", 60, DAY / 2)
    limiter.report("a", [], [], NOON + DAY / 2)
    assert limiter.acquire("a", request("2"), limits, NOON + DAY / 2) == Granted()


def test_what_makes_no_audio_does_not_need_any(limiter: Limiter) -> None:
    limits = ClientLimits(audio_seconds_per_day=1)
    limiter.report("a", [], [replace(request("1"), seconds=5)], NOON)
    asks = request("2", makes_audio=False)
    assert limiter.acquire("a", asks, limits, NOON) == Granted()
    assert isinstance(limiter.acquire("a", request("3"), limits, NOON), Denied)


def test_requests_that_have_made_nothing_yet_count_so_that_a_burst_is_bounded(
    limiter: Limiter,
) -> None:
    limits = ClientLimits(audio_seconds_per_day=60)  # two of 30 reserved seconds
    answers = [limiter.acquire("a", request(str(i)), limits, NOON) for i in range(5)]
    assert answers[:2] == [Granted(), Granted()]
    assert answers[2:] == [Denied("audio_seconds_per_day", 60, None)] * 3
    limiter.report("a", [], [replace(request("0"), seconds=1)], NOON)
    assert limiter.acquire("a", request("9"), limits, NOON) == Granted()


def test_what_has_been_made_counts_before_a_request_ends(limiter: Limiter) -> None:
    limits = ClientLimits(audio_seconds_per_day=60)
    assert limiter.acquire("a", request("1"), limits, NOON) == Granted()
    limiter.report("a", [replace(request("1"), seconds=60)], [], NOON)
    assert isinstance(limiter.acquire("b", request("2"), limits, NOON), Denied)


def test_saying_the_same_twice_charges_once(limiter: Limiter, usage: Usage) -> None:
    ended = replace(request("1"), seconds=7)
    for _ in range(3):
        limiter.report("a", [], [ended], NOON)
    assert usage.seconds("alice", 20_000) == 7


def test_what_goes_on_without_more_audio_is_not_charged_again(
    limiter: Limiter, usage: Usage
) -> None:
    quiet = replace(request("1", kind="websocket"), seconds=7)
    for minute in range(121):
        limiter.report("a", [quiet], [], NOON + 60 * minute)
    usage.forget(NOON + 7200)
    limiter.report("a", [quiet], [], NOON + 7200)
    limiter.report("a", [replace(quiet, seconds=5)], [], NOON + 7200)  # late
    limiter.report("a", [], [replace(quiet, seconds=8)], NOON + 7200)
    assert usage.seconds("alice", 20_000) == 8
    usage.forget(NOON + 7200 + 3601)
    assert usage.charged("1") == 0


def test_leases_of_a_silent_front_end_expire_and_their_audio_stays_charged(
    limiter: Limiter, usage: Usage
) -> None:
    limits = ClientLimits(concurrent_requests=1)
    assert limiter.acquire("a", request("1"), limits, NOON) == Granted()
    limiter.report("a", [replace(request("1"), seconds=3)], [], NOON)
    limiter.report("b", [], [], NOON + 10)
    assert isinstance(limiter.acquire("b", request("2"), limits, NOON + 10), Denied)
    assert limiter.acquire("b", request("2"), limits, NOON + 10.1) == Granted()
    assert usage.seconds("alice", 20_000) == 3
    # It was only slow: what it still holds counts again, what it charged is not charged twice.
    limiter.report("a", [replace(request("1"), seconds=4)], [], NOON + 11)
    assert limiter.leases("alice", "request") == 2
    assert usage.seconds("alice", 20_000) == 4


def test_an_end_that_overtakes_its_beginning_leaves_no_lease(limiter: Limiter) -> None:
    limits = ClientLimits(concurrent_requests=1)
    limiter.report("a", [], [request("1")], NOON)
    assert limiter.acquire("a", request("1"), limits, NOON) == Granted()
    assert limiter.leases("alice", "request") == 0
    limiter.report("a", [request("1")], [], NOON)  # late as well
    assert limiter.leases("alice", "request") == 0


def test_a_restart_forgets_no_audio_and_learns_the_leases_again(tmp_path: Path) -> None:
    file = tmp_path / "usage.sqlite"
    limits = ClientLimits(audio_seconds_per_day=100, concurrent_requests=1)
    first = Limiter(Usage(file), 30, 10)
    first.report("a", [], [], NOON)
    assert first.acquire("a", request("1"), limits, NOON) == Granted()
    live = replace(request("1"), seconds=40)
    first.report("a", [live], [], NOON)

    usage = Usage(file)
    second = Limiter(usage, 30, 10)
    assert second.acquire("a", request("2"), limits, NOON) == Unknown()
    second.report("a", [live], [], NOON)
    denied = second.acquire("a", request("2"), limits, NOON)
    assert denied == Denied("concurrent_requests", 1, None)
    second.report("a", [], [replace(live, seconds=45)], NOON)
    assert usage.seconds("alice", 20_000) == 45


class ManyFrontEnds(RuleBasedStateMachine):
    """Front ends that come, go, are slow and repeat themselves, against a plain count."""

    LIMITS = ClientLimits(concurrent_requests=3, audio_seconds_per_day=200)

    def __init__(self) -> None:
        super().__init__()
        self.usage = Usage(None)
        self.limiter = Limiter(self.usage, 30, lease_seconds=10)
        self.now = NOON
        self.number = 0
        self.live: dict[str, dict[str, LeaseReport]] = defaultdict(dict)
        self.unsaid: dict[str, list[LeaseReport]] = defaultdict(list)
        self.made = 0.0

    @rule(front_end=st.sampled_from("abc"))
    def begin(self, front_end: str) -> None:
        self.number += 1
        asked = request(str(self.number))
        decision = self.limiter.acquire(front_end, asked, self.LIMITS, self.now)
        if decision == Granted():
            self.live[front_end][asked.lease] = asked

    @precondition(lambda self: any(self.live.values()))
    @rule(data=st.data(), seconds=st.floats(0, 20))
    def make_audio(self, data: st.DataObject, seconds: float) -> None:
        front_end = data.draw(st.sampled_from([k for k, v in self.live.items() if v]))
        lease = data.draw(st.sampled_from(sorted(self.live[front_end])))
        old = self.live[front_end][lease]
        self.live[front_end][lease] = replace(old, seconds=old.seconds + seconds)
        self.made += seconds

    @precondition(lambda self: any(self.live.values()))
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        front_end = data.draw(st.sampled_from([k for k, v in self.live.items() if v]))
        lease = data.draw(st.sampled_from(sorted(self.live[front_end])))
        self.unsaid[front_end].append(self.live[front_end].pop(lease))

    @rule(front_end=st.sampled_from("abc"), heard=st.booleans())
    def report(self, front_end: str, heard: bool) -> None:
        live = list(self.live[front_end].values())
        self.limiter.report(front_end, live, self.unsaid[front_end], self.now)
        if heard:  # otherwise it says it again
            self.unsaid[front_end].clear()

    @rule(seconds=st.floats(0, 4))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def restart(self) -> None:
        self.limiter = Limiter(self.usage, 30, lease_seconds=10)

    @invariant()
    def never_charges_more_than_was_made(self) -> None:
        assert self.usage.seconds("alice", 20_000) <= self.made + 1e-6

    def teardown(self) -> None:
        for front_end in "abc":
            ended = [*self.unsaid[front_end], *self.live[front_end].values()]
            self.limiter.report(front_end, [], ended, self.now)
        assert self.limiter.leases("alice", "request") == 0
        if self.now < 20_001 * DAY:
            assert self.usage.seconds("alice", 20_000) == pytest.approx(self.made)
        self.usage.close()


TestManyFrontEnds = ManyFrontEnds.TestCase
