"""The policy against every arrival, abort and shortage that a scheduler can meet."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

from tests.unit.cfg_pairing.simulator import Job, Limits, Simulator, StepReport


class Checked:
    """A simulator whose every step keeps every promise of the policy."""

    def __init__(self, limits: Limits, cache: Random | None = None) -> None:
        self.simulator = Simulator(limits, cache)

    def step(self, aborted: list[int] | None = None) -> StepReport:
        live = set(self.simulator.units)
        progress = self._progress()
        report = self.simulator.step(aborted or ())
        self._check_tokens(report)
        self._check_pairs(report)
        self._check_order(report)
        self._check_progress(report, live, progress)
        self.check_state()
        return report

    def drain(self) -> None:
        """Everything that is in finishes, within ``bound`` steps."""
        left = bound([self.simulator.jobs[order] for order in self.simulator.units])
        while self.simulator.units:
            assert left > 0, f"{len(self.simulator.units)} units are stuck"
            self.step()
            left -= 1
        assert self.simulator.free_blocks == self.simulator.limits.blocks

    def check_state(self) -> None:
        simulator, limits = self.simulator, self.simulator.limits
        rows = [row for unit in simulator.units.values() for row in unit.rows]
        assert len(simulator.running) <= limits.rows
        assert simulator.free_blocks >= 0
        assert simulator.free_blocks + sum(row.blocks for row in rows) == limits.blocks
        assert {row for row in rows if row.running} == set(simulator.running)
        assert {row for row in rows if not row.running} == set(simulator.waiting)
        for unit in simulator.units.values():
            assert len(unit.rows) == 1 or unit.guided
        live = sum(unit.guided and unit.was_admitted for unit in simulator.units.values())
        assert simulator.ledger.violations(live) == []

    def _check_tokens(self, report: StepReport) -> None:
        limits = self.simulator.limits
        assert sum(report.scheduled.values()) <= limits.budget
        assert all(tokens > 0 for tokens in report.scheduled.values())

    def _check_pairs(self, report: StepReport) -> None:
        for unit in report.lock_steps:
            assert [report.scheduled.get(row) for row in unit.rows] == [1, 1]
            assert not report.held & set(unit.rows)
        for unit in self.simulator.units.values():
            if unit.guided:
                written = [max(0, self.simulator.audio_rows(unit, row)) for row in unit.rows]
                assert len(set(written)) == 1, "the rows of a pair wrote different audio"

    def _check_order(self, report: StepReport) -> None:
        """Nobody is overtaken: who runs is older than who waits."""
        units = self.simulator.units.values()
        running = [unit.order for unit in units if any(row.running for row in unit.rows)]
        waiting = [unit.order for unit in units if unit.order not in running]
        assert max(running, default=-1) < min(waiting, default=self.simulator.unborn)
        assert report.admitted == sorted(report.admitted)
        assert report.half_admitted == []
        assert report.preempted == sorted(report.preempted, reverse=True)

    def _check_progress(self, report: StepReport, live: set[int], before: dict[int, int]) -> None:
        """A step computes something, and the oldest unit keeps what it has."""
        assert not live or report.scheduled or report.preempted
        oldest = min(live, default=None)
        if oldest is None or oldest not in self.simulator.units:
            return
        assert oldest not in report.preempted
        unit = self.simulator.units[oldest]
        waits = not all(row.running for row in unit.rows)
        assert self._progress()[oldest] > before[oldest] or waits or report.held & set(unit.rows)

    def _progress(self) -> dict[int, int]:
        units = self.simulator.units.values()
        return {u.order: sum(r.num_computed_tokens + r.generated for r in u.rows) for u in units}


def bound(jobs: list[Job]) -> int:
    """Steps in which any scheduler that keeps the policy's promises ends ``jobs``.

    While a unit is the oldest, a step computes one of its tokens (again, for a held row of
    each of its two rows), or its companion waits. Then nobody is admitted, so the others
    compute at most what they are, or give it up once.
    """
    tokens = sum(job.tokens for job in jobs)
    return sum(job.tokens + 4 + tokens + len(jobs) for job in jobs)


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    rows = draw(st.integers(1, 7))
    budget = draw(st.one_of(st.just(rows), st.integers(rows, rows + 12), st.just(1000)))
    return Limits(rows, draw(st.integers(2, 24)), draw(st.integers(1, 5)), budget)


@st.composite
def jobs(draw: st.DrawFn, limits: Limits, guided: bool | None = None, longest: int = 40) -> Job:
    """Requests that fit, some of them exactly."""
    if guided is None:
        guided = limits.rows >= 2 and limits.room(guided=True) >= 3 and draw(st.booleans())
    room = min(limits.room(guided), longest)
    if not guided and (room < 3 or draw(st.integers(0, 3)) == 0):
        prompt = draw(st.integers(1, room - 1))
        return Job(prompt, text=draw(st.integers(1, room - prompt)))
    prompt = draw(st.integers(1, room - 2))
    unconditional = draw(st.none() | st.integers(1, room - 2)) if guided else None
    left = room - max(prompt, unconditional or 0) - 1
    audio = draw(st.integers(1, left))
    return Job(prompt, draw(st.integers(0, left - audio)), audio, guided, unconditional)


caches = st.none() | st.builds(Random, st.integers(0, 99))


class Traffic(RuleBasedStateMachine):
    """Requests come and go between and within steps."""

    @initialize(limits=limits(), cache=caches)
    def start(self, limits: Limits, cache: Random | None) -> None:
        self.engine = Checked(limits, cache)

    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        simulator = self.engine.simulator
        simulator.arrive(data.draw(jobs(simulator.limits)))

    @rule(steps=st.integers(1, 12))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            self.engine.step()

    @precondition(lambda self: self.engine.simulator.units)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.engine.simulator.abort(data.draw(self._some_order()))
        self.engine.check_state()

    @precondition(lambda self: self.engine.simulator.units)
    @rule(data=st.data())
    def abort_in_flight(self, data: st.DataObject) -> None:
        self.engine.step(aborted=[data.draw(self._some_order())])

    def _some_order(self) -> st.SearchStrategy[int]:
        return st.sampled_from(sorted(self.engine.simulator.units))

    def teardown(self) -> None:
        self.engine.drain()


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=120, stateful_step_count=30, database=None)


@st.composite
def storms(draw: st.DrawFn) -> tuple[Limits, list[Job]]:
    """Guided requests that write text first, in as little room as they can have."""
    rows, size = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    blocks = draw(st.integers(-(-4 // size) * 2, -(-12 // size) * 2))
    budget = draw(st.one_of(st.just(rows), st.just(rows + 1), st.just(1000)))
    tight = Limits(rows, blocks, size, budget)
    room = tight.room(guided=True)
    requests = []
    for _ in range(draw(st.integers(2, 7))):
        prompt = draw(st.integers(1, room - 3))
        text = draw(st.integers(1, room - prompt - 2))
        audio = draw(st.integers(1, room - prompt - text - 1))
        unconditional = draw(st.none() | st.integers(1, prompt))
        requests.append(Job(prompt, text, audio, True, unconditional))
    return tight, requests


@given(storms(), caches)
@settings(max_examples=200)
def test_a_storm_of_text_then_guided_audio_drains(
    storm: tuple[Limits, list[Job]], cache: Random | None
) -> None:
    limits, requests = storm
    engine = Checked(limits, cache)
    for job in requests:
        engine.simulator.arrive(job)
    engine.drain()
    assert engine.simulator.ledger.finished == len(requests)
