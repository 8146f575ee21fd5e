"""Who steps, who waits, who is preempted: the scheduling policy, free of vLLM.

A *unit* is a request: one row, or a guided pair of rows once it writes audio. Units
are admitted in order of arrival and preempted in the opposite order, always whole, so
every running unit is older than every waiting one: no deadlock, and nobody is overtaken.
The oldest progresses in every step, or, once its text is written and its second row has
to be found, waits at the head of the queue for the next unit to end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Row(Protocol):
    """One sequence. ``num_computed_tokens`` of its ``num_tokens`` are in the KV cache."""

    request_id: str
    num_computed_tokens: int

    @property
    def num_tokens(self) -> int:
        """Known rows: the prompt and what was generated."""
        ...


R = TypeVar("R", bound=Row)


@dataclass
class Unit(Generic[R]):
    """One request and its rows.

    Attributes:
        order: arrival number.
        guided: whether its audio needs two rows.
        companion: the unconditional row; None before audio begins, or if not guided.
        lead: known rows the leader has more than its companion when both are at the
            same audio row.
        leader_runs, companion_runs: whether the row holds a slot and blocks.
        was_admitted: whether it ever held a row; noted of guided ones alone.
        joined: whether the pair took its first lock-step.
    """

    leader: R
    order: int
    guided: bool = False
    companion: R | None = None
    lead: int = 0
    leader_runs: bool = False
    companion_runs: bool = False
    was_admitted: bool = False
    joined: bool = False

    @property
    def rows(self) -> list[R]:
        """Its rows, the leader first."""
        return [self.leader] if self.companion is None else [self.leader, self.companion]

    @property
    def running_rows(self) -> list[R]:
        """The rows that hold a slot, the leader first."""
        rows = [self.leader] if self.leader_runs else []
        if self.companion is not None and self.companion_runs:
            rows.append(self.companion)
        return rows


def is_ready(row: Row) -> bool:
    """Whether only the last known row is missing: the next step samples."""
    return row.num_computed_tokens >= row.num_tokens - 1


def in_lock_step(unit: Unit[R]) -> bool:
    """Whether both rows of a pair can take the next step together."""
    leader, companion = unit.leader, unit.companion
    if companion is None or not (unit.leader_runs and unit.companion_runs):
        return False
    known, known_too = leader.num_tokens, companion.num_tokens
    return (
        known - known_too == unit.lead
        and leader.num_computed_tokens >= known - 1
        and companion.num_computed_tokens >= known_too - 1
    )


def is_behind(unit: Unit[R], row: R) -> bool:
    """Whether ``row`` of a pair has yet to generate ``audio_begin``, which its partner has."""
    if unit.companion is None:
        return False
    gap = unit.leader.num_tokens - unit.companion.num_tokens - unit.lead
    return gap < 0 if row is unit.leader else gap > 0


@dataclass(frozen=True)
class StepOrder(Generic[R]):
    """The running rows of a step.

    Attributes:
        stepping: rows that sample, pairs next to each other. They come first, so a
            token budget of at least one per slot can never split a pair.
        prefilling: rows with more than their last row to compute.
        parked: rows that wait for their partner.
        pairs: units of which both rows step, in lock-step.
    """

    stepping: list[R]
    prefilling: list[R]
    parked: list[R]
    pairs: list[Unit[R]]

    @property
    def active(self) -> list[R]:
        """Rows that progress in this step."""
        return self.stepping + self.prefilling


def order_rows(units: Sequence[Unit[R]]) -> StepOrder[R]:
    """Classifies the running rows of ``units``, which come in order of arrival.

    A row of a pair steps with its partner, prefills on its own, and catches up on its own.
    """
    stepping: list[R] = []
    prefilling: list[R] = []
    parked: list[R] = []
    pairs: list[Unit[R]] = []
    for unit in units:
        if in_lock_step(unit):
            pairs.append(unit)
            stepping += unit.rows
            continue
        for row in unit.running_rows:
            if not is_ready(row):
                prefilling.append(row)
            elif unit.companion is None or is_behind(unit, row):
                stepping.append(row)
            else:
                parked.append(row)
    return StepOrder(stepping, prefilling, parked, pairs)


def blocks_for(tokens: int, block_size: int) -> int:
    """KV blocks that hold ``tokens`` rows."""
    return -(-tokens // block_size)


def blocks_needed(
    order: StepOrder[R], block_size: int, budget: int, held: Callable[[R], int]
) -> int:
    """New KV blocks a step takes at most.

    Args:
        budget: tokens the step may compute.
        held: blocks a row has.
    """
    needed = 0
    for row in order.stepping:
        if row.num_computed_tokens % block_size == 0:
            needed += max(0, blocks_for(row.num_computed_tokens + 1, block_size) - held(row))
    left = budget - len(order.stepping)
    for row in order.prefilling:
        chunk = min(left, row.num_tokens - row.num_computed_tokens)
        if chunk <= 0:
            break
        left -= chunk
        needed += max(0, blocks_for(row.num_computed_tokens + chunk, block_size) - held(row))
    return needed


@dataclass(frozen=True)
class Capacity:
    """What is free now, and what runs."""

    rows: int
    blocks: int
    running_rows: int
    block_size: int


def rows_to_admit(unit: Unit[R]) -> list[R]:
    """The rows of a unit that do not run yet."""
    running = {row.request_id for row in unit.running_rows}
    return [row for row in unit.rows if row.request_id not in running]


def may_admit(unit: Unit[R], capacity: Capacity) -> bool:
    """Whether all missing rows of a unit can be admitted at once.

    A new unit leaves one free block for every eight running rows, so that it is not
    preempted again at their next block boundary. With nothing running it needs no more
    than it will hold, so a unit that fits the cache is never refused for ever.
    """
    rows = rows_to_admit(unit)
    blocks = sum(blocks_for(row.num_tokens + 1, capacity.block_size) for row in rows)
    reserve = 0 if unit.leader_runs else blocks_for(capacity.running_rows, 8)
    return len(rows) <= capacity.rows and blocks + reserve <= capacity.blocks


def next_victim(running: Sequence[Unit[R]]) -> Unit[R]:
    """The unit to preempt: the youngest that runs."""
    return max(running, key=lambda unit: unit.order)
