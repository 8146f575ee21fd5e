"""The queue of a replica: order, weights, bounds, and nothing lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cfg_pairing.admission import PRIORITIES, AdmissionQueue, ClassPolicy, Full, Priority, Ticket

WEIGHTS: dict[Priority, float] = {"realtime": 8, "standard": 4, "batch": 1}


def queue(
    rows: int = 4,
    *,
    requests: int = 100,
    max_wait: float = 1e9,
    max_waiting: int = 10_000,
) -> AdmissionQueue:
    classes = {p: ClassPolicy(WEIGHTS[p], max_wait) for p in PRIORITIES}
    return AdmissionQueue(rows, requests, classes, max_waiting)


def ticket(
    waiting: AdmissionQueue, priority: Priority = "standard", rows: int = 1, now: float = 0
) -> Ticket:
    arrived = waiting.arrive(priority, rows, now)
    assert isinstance(arrived, Ticket)
    return arrived


def test_there_is_room_at_once_until_the_rows_are_taken() -> None:
    line = queue(rows=4)
    tickets = [ticket(line, rows=2), ticket(line), ticket(line), ticket(line)]
    assert [t.admitted for t in tickets] == [0, 0, 0, None]
    assert (line.running_rows, line.waiting_rows()) == (4, 1)
    assert line.leave(tickets[1], now=3) == [tickets[3]]
    assert tickets[3].admitted == 3


def test_requests_are_bounded_beside_rows() -> None:
    line = queue(rows=4, requests=2)
    tickets = [ticket(line) for _ in range(3)]
    assert [t.admitted for t in tickets] == [0, 0, None]


def test_a_guided_request_is_not_overtaken_while_one_row_is_free() -> None:
    line = queue(rows=2)
    holder = ticket(line)
    pair, single = ticket(line, rows=2), ticket(line)
    assert (pair.admitted, single.admitted) == (None, None)
    assert line.leave(holder, now=1) == [pair]
    assert line.leave(pair, now=2) == [single]


def test_more_rows_than_there_are_count_as_all() -> None:
    assert ticket(queue(rows=1), rows=2).admitted == 0


def test_leaving_twice_is_an_error() -> None:
    line = queue()
    once = ticket(line)
    line.leave(once, 1)
    with pytest.raises(ValueError, match="left before"):
        line.leave(once, 2)


@pytest.mark.parametrize(("rows", "requests", "weight"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_queue_that_could_serve_nobody_is_an_error(
    rows: int, requests: int, weight: float
) -> None:
    classes = {p: ClassPolicy(weight, 1) for p in PRIORITIES}
    with pytest.raises(ValueError, match=r"needs a row|must be positive"):
        AdmissionQueue(rows, requests, classes, 10)


def test_a_class_that_does_not_wait_is_told_when_a_place_is_free() -> None:
    line = queue(rows=2, max_wait=0)
    for _ in range(2):
        ticket(line, now=0)
    full = line.arrive("standard", 1, now=8)
    # Both have held their rows for 8 seconds, so one becomes free every 4.
    assert full == Full(expected_wait=4, retry_after=4)


def test_what_a_place_is_held_for_is_learnt() -> None:
    line = queue(rows=1, max_wait=0)
    for start in range(0, 5000, 50):
        line.leave(ticket(line, now=start), now=start + 50)
    ticket(line, now=5000)
    full = line.arrive("standard", 1, now=5000)
    assert isinstance(full, Full)
    assert full.retry_after == pytest.approx(50, rel=0.01)


def test_the_bound_is_on_the_expected_wait() -> None:
    line = queue(rows=1, max_wait=12)
    ticket(line)  # holds its row for 5 seconds, as long as nothing else is known
    assert [isinstance(line.arrive("standard", 1, 0), Ticket) for _ in range(3)] == [
        True,
        True,
        False,
    ]
    assert line.arrive("standard", 1, 0) == Full(expected_wait=15, retry_after=3)


def test_other_classes_count_by_their_share_of_what_is_ahead() -> None:
    line = queue(rows=1)
    ticket(line)
    for _ in range(40):
        ticket(line, "batch")
    # For one row of realtime an eighth of a row of batch passes by; for the 41st of batch, all.
    assert line.expected_wait("realtime", 1, 0) == pytest.approx(5 * (1 + 1 / 8))
    assert line.expected_wait("batch", 1, 0) == pytest.approx(5 * 41)


def test_the_number_of_those_who_wait_is_bounded() -> None:
    line = queue(rows=1, max_waiting=2)
    for _ in range(3):
        ticket(line)
    full = line.arrive("standard", 1, 0)
    assert isinstance(full, Full)
    assert full.retry_after == 5


def test_patience_is_twice_what_was_allowed() -> None:
    line = queue(rows=1, max_wait=6)
    ticket(line)
    assert ticket(line, now=1).give_up == 1 + 12


def test_the_oldest_of_all_classes() -> None:
    line = queue(rows=1)
    assert line.oldest(9) == 0
    for now, priority in enumerate(PRIORITIES):
        ticket(line, priority, now=now)
    assert line.oldest(9) == 8


def test_a_saturated_replica_shares_its_rows_by_weight() -> None:
    line, random = queue(rows=6), Random(0)
    arrived = [ticket(line, p, random.choice((1, 2))) for _ in range(2000) for p in PRIORITIES]
    running = [one for one in arrived if one.admitted is not None]
    had = dict.fromkeys(PRIORITIES, 0)
    for now in range(1500):
        admitted = line.leave(running.pop(random.randrange(len(running))), now)
        running += admitted
        for one in admitted:
            had[one.priority] += one.rows
    assert all(line.waiting(priority) for priority in PRIORITIES)
    for priority in PRIORITIES:
        share = WEIGHTS[priority] / sum(WEIGHTS.values())
        assert had[priority] / sum(had.values()) == pytest.approx(share, abs=0.01)


OTHERS: list[tuple[Priority, int]] = [
    ("realtime", 1),
    ("realtime", 2),
    ("standard", 1),
    ("standard", 2),
]


@given(st.lists(st.sampled_from(OTHERS), min_size=1, max_size=20))
def test_batch_is_served_however_much_of_the_others_comes(
    others: list[tuple[Priority, int]],
) -> None:
    """A row of batch waits for eight of realtime, four of standard, and what exceeds a share."""
    line = queue(rows=2)
    running = [ticket(line, "realtime", 2)]
    first, second = ticket(line, "batch"), ticket(line, "batch")
    ahead = 0
    for now, (priority, rows) in enumerate(others * 40):
        arrived = [ticket(line, priority, rows, now) for _ in range(2)]
        admitted = [one for one in arrived if one.admitted is not None]
        admitted += line.leave((running + admitted).pop(0), now)
        running = [one for one in running + admitted if not one.left]
        if second in admitted:
            break
        if first.admitted is not None:
            ahead += sum(one.rows for one in admitted if one is not first)
    assert second.admitted is not None
    assert ahead <= (8 + 2) + (4 + 2)


@dataclass
class Model:
    """What the queue must agree with: every ticket, by what became of it."""

    waiting: list[Ticket] = field(default_factory=list)
    running: list[Ticket] = field(default_factory=list)


class Machine(RuleBasedStateMachine):
    """Arrivals, ends and departures in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = queue(rows=5, requests=4, max_wait=30, max_waiting=12)
        self.model = Model()
        self.now = 0.0

    @rule(priority=st.sampled_from(PRIORITIES), rows=st.integers(1, 2))
    def arrive(self, priority: Priority, rows: int) -> None:
        expected = self.queue.expected_wait(priority, rows, self.now)
        arrived = self.queue.arrive(priority, rows, self.now)
        if isinstance(arrived, Full):
            assert expected > 30 or len(self.model.waiting) == 12
            assert arrived.retry_after >= 0
        else:
            assert expected <= 30
            self.model.waiting.append(arrived)
            self._settle([arrived] if arrived.admitted is not None else [])

    @precondition(lambda self: self.model.running)
    @rule(index=st.integers(0, 3))
    def end(self, index: int) -> None:
        ended = self.model.running.pop(index % len(self.model.running))
        self._settle(self.queue.leave(ended, self.now))

    @precondition(lambda self: self.model.waiting)
    @rule(index=st.integers(0, 11))
    def depart(self, index: int) -> None:
        """A client leaves while it waits; nobody's place changes for the worse."""
        departed = self.model.waiting.pop(index % len(self.model.waiting))
        self._settle(self.queue.leave(departed, self.now))
        assert departed.admitted is None

    @rule(seconds=st.floats(0, 20))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def _settle(self, admitted: list[Ticket]) -> None:
        for one in admitted:
            assert one.admitted == self.now
            older = [t for t in self.model.waiting if t.priority == one.priority]
            assert older[0] is one, "order within a class"
            self.model.waiting.remove(one)
            self.model.running.append(one)

    @invariant()
    def nothing_is_lost_or_counted_twice(self) -> None:
        model = self.model
        assert self.queue.running == len(model.running)
        assert self.queue.running_rows == sum(t.rows for t in model.running)
        assert self.queue.waiting() == len(model.waiting)
        assert self.queue.waiting_rows() == sum(t.rows for t in model.waiting)
        for priority in PRIORITIES:
            mine = [t for t in model.waiting if t.priority == priority]
            assert list(self.queue._waiting[priority]) == mine

    @invariant()
    def nobody_waits_beside_rows_that_would_do(self) -> None:
        free = 5 - self.queue.running_rows
        if self.model.waiting and self.queue.running < 4:
            assert free < max(t.rows for t in self.model.waiting)
        assert free >= 0
        assert self.queue.running <= 4

    def teardown(self) -> None:
        """Whoever waits is served in the end."""
        while self.model.running:
            self.now += 1
            self.end(0)
        assert not self.model.waiting


TestAdmission = Machine.TestCase
TestAdmission.settings = settings(max_examples=50, deadline=None)
