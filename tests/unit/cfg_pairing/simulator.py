"""vLLM's loop and a worker, small enough to check after every step; the policy is the real one.

``Simulator`` does with ``cfg_pairing.policy`` what ``PairScheduler`` does, around a copy of
the part of vLLM's loop that matters here: a waiting queue, a list of running rows, a pool of
KV blocks, a token budget, prefill in chunks, and preemption from the tail where blocks lack.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from cfg_pairing.ledger import PairLedger
from cfg_pairing.policy import (
    Capacity,
    StepOrder,
    Unit,
    blocks_for,
    blocks_needed,
    in_lock_step,
    may_admit,
    next_victim,
    order_rows,
)


@dataclass(frozen=True)
class Limits:
    """Of an engine. ``budget``, the tokens of a step, is at least ``rows``."""

    rows: int
    blocks: int
    block_size: int
    budget: int

    def room(self, guided: bool) -> int:
        """Rows each context of a request may have."""
        return self.blocks // (2 if guided else 1) * self.block_size


@dataclass(frozen=True)
class Job:
    """What a request is going to be.

    Attributes:
        prompt: rows of the prompt.
        text: rows it generates before ``audio_begin`` (all of them, if ``audio`` is 0).
        audio: rows it generates after it.
        unconditional: rows of the guidance prompt; None for as many as the leader has.
    """

    prompt: int
    text: int = 0
    audio: int = 0
    guided: bool = False
    unconditional: int | None = None

    @property
    def generated(self) -> int:
        return self.text + (1 + self.audio if self.audio else 0)

    @property
    def companion_prompt(self) -> int:
        return self.prompt + self.text if self.unconditional is None else self.unconditional

    @property
    def tokens(self) -> int:
        """Rows of all its contexts when it ends."""
        own = self.prompt + self.generated
        return own + (self.companion_prompt + 1 + self.audio if self.guided else 0)


@dataclass(eq=False)
class SimRow:
    """One sequence."""

    request_id: str
    prompt: int
    generated: int = 0
    num_computed_tokens: int = 0
    blocks: int = 0
    running: bool = False
    was_preempted: bool = False

    @property
    def num_tokens(self) -> int:
        return self.prompt + self.generated


@dataclass
class StepReport:
    """What a step did.

    Attributes:
        scheduled: tokens per row.
        lock_steps: pairs that were in lock-step when the step was planned.
        preempted: orders of the units preempted, in turn.
        admitted: orders of the units whose leader was admitted, in turn.
        half_admitted: those whose other row was not, although tokens were left.
        sampled: rows that wrote a row.
        held: rows that were computed to the end and wrote nothing.
    """

    scheduled: dict[SimRow, int] = field(default_factory=dict)
    lock_steps: list[Unit[SimRow]] = field(default_factory=list)
    preempted: list[int] = field(default_factory=list)
    admitted: list[int] = field(default_factory=list)
    half_admitted: list[int] = field(default_factory=list)
    sampled: set[SimRow] = field(default_factory=set)
    held: set[SimRow] = field(default_factory=set)


class Simulator:
    """An engine in which every request takes the path its job says."""

    def __init__(self, limits: Limits, cache: Random | None = None) -> None:
        """Args:
        cache: draws how much of a context the prefix cache holds; None for no cache.
        """
        self.limits = limits
        self.cache = cache
        self.waiting: list[SimRow] = []
        self.running: list[SimRow] = []
        self.units: dict[int, Unit[SimRow]] = {}
        self.jobs: dict[int, Job] = {}
        self.ledger = PairLedger()
        self.free_blocks = limits.blocks
        self.unborn = 0  # order of the next arrival
        self._closed = False  # vLLM's PAUSED_NEW
        self._report = StepReport()

    # Arrival and end

    def arrive(self, job: Job) -> int:
        order = self.unborn
        self.unborn += 1
        unit = Unit(SimRow(str(order), job.prompt), order, guided=job.guided)
        self.units[order], self.jobs[order] = unit, job
        self.waiting.append(unit.leader)
        if job.guided and not job.text:
            self._add_companion(unit)
        return order

    def abort(self, order: int) -> None:
        self._end(self.units[order], "aborted")

    def _add_companion(self, unit: Unit[SimRow]) -> None:
        job = self.jobs[unit.order]
        unit.companion = SimRow(f"{unit.order}#unconditional", job.companion_prompt)
        unit.lead = job.prompt + job.text - job.companion_prompt
        self.waiting.append(unit.companion)

    def _end(self, unit: Unit[SimRow], outcome: str) -> None:
        for row in unit.rows:
            (self.running if row.running else self.waiting).remove(row)
            self._stop(row)
        del self.units[unit.order]
        if unit.guided and unit.was_admitted:
            self.ledger.count(outcome)

    # A step

    def step(self, aborted: Collection[int] = ()) -> StepReport:
        """Plans and takes a step; ``aborted`` end while the worker computes it."""
        self._report = StepReport()
        units = self._running_units()
        order = self._make_room(units)
        self.running = [*order.stepping, *order.prefilling, *order.parked]
        self._report.lock_steps = [unit for unit in units if in_lock_step(unit)]
        budget = self._schedule_running(set(order.parked))
        self._closed = bool(self._report.preempted)
        self._schedule_waiting(budget)
        self._note_pairs()
        for number in aborted:
            self.abort(number)
        self._sample()
        return self._report

    def _running_units(self) -> list[Unit[SimRow]]:
        for row in self.running:
            row.num_computed_tokens = min(row.num_computed_tokens, row.num_tokens - 1)
        for unit in self.units.values():
            self._refresh(unit)
        units = [unit for unit in self.units.values() if unit.running_rows]
        return sorted(units, key=lambda unit: unit.order)

    def _refresh(self, unit: Unit[SimRow]) -> None:
        unit.leader_runs = unit.leader.running
        unit.companion_runs = unit.companion is not None and unit.companion.running

    def _make_room(self, units: list[Unit[SimRow]]) -> StepOrder[SimRow]:
        order = order_rows(units)
        while len(units) > 1 and self._is_stuck(order):
            victim = next_victim(units)
            units.remove(victim)
            for row in victim.running_rows:
                self.running.remove(row)
                self._stop(row)
                row.num_computed_tokens, row.was_preempted = 0, True
                self.waiting.append(row)
            self._report.preempted.append(victim.order)
            if victim.guided:
                self.ledger.count("preempted")
            order = order_rows(units)
        if self._report.preempted:
            self._sort_waiting()
        return order

    def _is_stuck(self, order: StepOrder[SimRow]) -> bool:
        if order.active:
            size, budget = self.limits.block_size, self.limits.budget
            return blocks_needed(order, size, budget, lambda row: row.blocks) > self.free_blocks
        return not may_admit(self.unit_of(self.waiting[0]), self._capacity())

    def _schedule_running(self, parked: Collection[SimRow]) -> int:
        """vLLM's first loop. It must never have to preempt by itself."""
        budget = self.limits.budget
        for row in self.running:
            tokens = min(row.num_tokens - row.num_computed_tokens, budget)
            if row in parked or tokens == 0:
                continue
            assert self._allocate(row, row.num_computed_tokens + tokens), "vLLM would preempt"
            self._report.scheduled[row] = tokens
            budget -= tokens
        return budget

    def _schedule_waiting(self, budget: int) -> None:
        """vLLM's second loop."""
        while budget and not self._closed and self.waiting:
            if len(self.running) >= self.limits.rows:
                break
            row = self.waiting[0]
            unit = self.unit_of(row)
            self._refresh(unit)
            if not may_admit(unit, self._capacity()):
                self._closed = True
                break
            size = self.limits.block_size
            cached = (
                0
                if self.cache is None
                else size * self.cache.randint(0, (row.num_tokens - 1) // size)
            )
            tokens = min(row.num_tokens - cached, budget)
            if blocks_for(row.num_tokens, size) > self.free_blocks:
                break
            assert self._allocate(row, cached + tokens)
            self.running.append(self.waiting.pop(0))
            row.running, row.num_computed_tokens = True, cached
            self._report.scheduled[row] = tokens
            budget -= tokens
            if row is unit.leader:
                self._note_admission(unit)
        admitted = [self.units[order] for order in self._report.admitted if budget]
        self._report.half_admitted = [
            unit.order for unit in admitted if not all(row.running for row in unit.rows)
        ]

    def _note_admission(self, unit: Unit[SimRow]) -> None:
        self._report.admitted.append(unit.order)
        if unit.guided:
            self.ledger.count("resumed" if unit.leader.was_preempted else "admitted")
            unit.was_admitted = True

    def _note_pairs(self) -> None:
        for unit in self._report.lock_steps:
            scheduled = [row in self._report.scheduled for row in unit.rows]
            if any(scheduled) and not all(scheduled):
                self.ledger.count("rows_split")
            if all(scheduled) and not unit.joined:
                unit.joined = True
                self.ledger.count("joined")

    # The worker, and what the scheduler does with its answer

    def _sample(self) -> None:
        for row, tokens in self._report.scheduled.items():
            row.num_computed_tokens += tokens
        complete = {
            row
            for row in self._report.scheduled
            if row.running and row.num_computed_tokens == row.num_tokens
        }
        self._report.held = {row for row in complete if self._is_held(row, complete)}
        self._report.sampled = complete - self._report.held
        for row in self._report.sampled:
            row.generated += 1
        for unit in list(self.units.values()):
            if unit.leader in self._report.sampled:
                self._update(unit)

    def _is_held(self, row: SimRow, complete: Collection[SimRow]) -> bool:
        """A guided audio row takes both contexts, each with its next row being audio."""
        unit = self.unit_of(row)
        if not unit.guided or self.audio_rows(unit, row) < 0:
            return False
        return not all(r in complete and self.audio_rows(unit, r) >= 0 for r in unit.rows)

    def audio_rows(self, unit: Unit[SimRow], row: SimRow) -> int:
        """Audio rows the row has written; -1 before ``audio_begin``."""
        before = 0 if row is unit.companion else self.jobs[unit.order].text
        return row.generated - before - 1

    def _update(self, unit: Unit[SimRow]) -> None:
        job = self.jobs[unit.order]
        if unit.guided and self.audio_rows(unit, unit.leader) > 0 and unit.companion is None:
            self.ledger.count("unguided_frames")
        if unit.leader.generated == job.generated:
            self._end(unit, "finished")
        elif unit.guided and unit.companion is None and unit.leader.generated == job.text + 1:
            self._add_companion(unit)
            self._sort_waiting()

    # Queue and pool

    def unit_of(self, row: SimRow) -> Unit[SimRow]:
        return self.units[int(row.request_id.split("#")[0])]

    def _sort_waiting(self) -> None:
        self.waiting.sort(key=lambda row: (self.unit_of(row).order, "#" in row.request_id))

    def _capacity(self) -> Capacity:
        return Capacity(
            rows=self.limits.rows - len(self.running),
            blocks=self.free_blocks,
            running_rows=len(self.running),
            block_size=self.limits.block_size,
        )

    def _allocate(self, row: SimRow, tokens: int) -> bool:
        new = max(0, blocks_for(tokens, self.limits.block_size) - row.blocks)
        if new > self.free_blocks:
            return False
        self.free_blocks -= new
        row.blocks += new
        return True

    def _stop(self, row: SimRow) -> None:
        self.free_blocks += row.blocks
        row.blocks, row.running = 0, False
