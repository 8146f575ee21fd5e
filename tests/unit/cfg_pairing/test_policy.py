"""What the policy says about rows and units at rest; test_policy_model.py runs it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfg_pairing.policy import (
    Capacity,
    Unit,
    blocks_for,
    blocks_needed,
    in_lock_step,
    is_behind,
    is_ready,
    may_admit,
    next_victim,
    order_rows,
    rows_to_admit,
)
from tests.unit.cfg_pairing.simulator import SimRow


def row(name: str, prompt: int = 4, generated: int = 1, missing: int = 1) -> SimRow:
    """A row that lacks the last ``missing`` of its tokens in the cache."""
    return SimRow(name, prompt, generated, prompt + generated - missing)


def plain(leader: SimRow, order: int = 0, runs: bool = True) -> Unit[SimRow]:
    return Unit(leader, order, leader_runs=runs)


def pair(
    leader: SimRow,
    companion: SimRow | None,
    order: int = 0,
    leader_runs: bool = True,
    companion_runs: bool = True,
    lead: int = 0,
) -> Unit[SimRow]:
    return Unit(
        leader,
        order,
        guided=True,
        companion=companion,
        lead=lead,
        leader_runs=leader_runs,
        companion_runs=companion_runs,
    )


def names(rows: list[SimRow]) -> list[str]:
    return [r.request_id for r in rows]


@pytest.mark.parametrize(("missing", "ready"), [(0, True), (1, True), (2, False), (5, False)])
def test_a_row_is_ready_when_at_most_its_last_row_is_missing(missing: int, ready: bool) -> None:
    assert is_ready(row("a", missing=missing)) is ready


def test_a_pair_steps_only_when_both_rows_run_and_are_ready() -> None:
    assert in_lock_step(pair(row("a"), row("a#")))
    assert not in_lock_step(pair(row("a"), row("a#", missing=2)))
    assert not in_lock_step(pair(row("a", missing=3), row("a#")))
    assert not in_lock_step(pair(row("a"), row("a#"), companion_runs=False))
    assert not in_lock_step(pair(row("a"), None))


@pytest.mark.parametrize("lead", [0, 3, -2])
@pytest.mark.parametrize("written", [1, 7])
def test_a_pair_steps_only_when_both_rows_are_at_the_same_audio_row(
    lead: int, written: int
) -> None:
    """Their prompts differ by ``lead`` rows; a row that lacks ``audio_begin`` catches up alone."""
    level = pair(row("a", 4 + lead, written), row("a#", 4, written), lead=lead)
    assert in_lock_step(level)
    assert not any(is_behind(level, r) for r in level.rows)
    late = pair(row("a", 4 + lead, 1), row("a#", 4, 0), lead=lead)
    early = pair(row("a", 4 + lead, 0), row("a#", 4, 1), lead=lead)
    for unit, name in ((late, "a#"), (early, "a")):
        assert not in_lock_step(unit)
        assert names([r for r in unit.rows if is_behind(unit, r)]) == [name]
        order = order_rows([unit])
        assert names(order.stepping) == [name]
        assert len(order.parked) == 1


def test_a_single_row_is_never_behind() -> None:
    assert not is_behind(plain(row("a")), row("a"))


def test_rows_that_sample_come_first_and_pairs_stay_together() -> None:
    order = order_rows(
        [
            pair(row("a", missing=3), row("a#"), order=0),
            plain(row("b"), order=1),
            plain(row("c", missing=2), order=2),
            pair(row("d"), row("d#"), order=3),
            pair(row("e"), row("e#"), order=4, companion_runs=False),
            pair(row("f"), None, order=5),
        ]
    )
    assert names(order.stepping) == ["b", "d", "d#", "f"]
    assert names(order.prefilling) == ["a", "c"]
    assert names(order.parked) == ["a#", "e"]
    assert order.active == order.stepping + order.prefilling


def test_text_before_guided_audio_steps_alone() -> None:
    order = order_rows([pair(row("a"), None)])
    assert names(order.stepping) == ["a"]


@given(tokens=st.integers(0, 100), size=st.integers(1, 16))
def test_blocks_for_is_the_least_number_that_holds_the_tokens(tokens: int, size: int) -> None:
    blocks = blocks_for(tokens, size)
    assert blocks * size >= tokens > (blocks - 1) * size


@st.composite
def running(draw: st.DrawFn, size: int) -> list[Unit[SimRow]]:
    """Running units with the blocks of what they computed, or one block more."""
    units = []
    for order in range(draw(st.integers(1, 5))):
        rows = []
        for name in (f"{order}", f"{order}#"):
            made = row(
                name,
                prompt=draw(st.integers(1, 12)),
                generated=draw(st.integers(0, 2)),
                missing=1,
            )
            made.num_computed_tokens -= draw(st.integers(0, made.num_computed_tokens))
            made.blocks = blocks_for(made.num_computed_tokens, size) + draw(st.integers(0, 1))
            rows.append(made)
        if draw(st.booleans()):
            units.append(pair(rows[0], rows[1], order))
        else:
            units.append(plain(rows[0], order))
    return units


@given(data=st.data(), size=st.integers(1, 5), budget=st.integers(10, 40))
def test_blocks_needed_is_what_vllm_allocates_in_the_step(
    data: st.DataObject, size: int, budget: int
) -> None:
    order = order_rows(data.draw(running(size)))
    left, taken = budget, 0
    for active in order.active:
        tokens = min(left, active.num_tokens - active.num_computed_tokens)
        left -= tokens
        if tokens:
            taken += max(0, blocks_for(active.num_computed_tokens + tokens, size) - active.blocks)
    assert blocks_needed(order, size, budget, lambda held: held.blocks) == taken


def capacity(rows: int, blocks: int, running_rows: int = 0) -> Capacity:
    return Capacity(rows, blocks, running_rows, block_size=4)


def test_a_waiting_pair_needs_both_rows_and_the_blocks_of_both() -> None:
    unit = pair(row("a", prompt=7), row("a#", prompt=3), leader_runs=False, companion_runs=False)
    assert names(rows_to_admit(unit)) == ["a", "a#"]
    # 8 and 4 known tokens and one more each: 3 and 2 blocks.
    assert may_admit(unit, capacity(rows=2, blocks=5))
    assert not may_admit(unit, capacity(rows=1, blocks=99))
    assert not may_admit(unit, capacity(rows=2, blocks=4))


def test_a_pair_that_has_begun_needs_the_other_row_only_and_no_reserve() -> None:
    unit = pair(row("a", prompt=7), row("a#", prompt=3), companion_runs=False)
    assert names(rows_to_admit(unit)) == ["a#"]
    assert may_admit(unit, capacity(rows=1, blocks=2, running_rows=64))
    assert not may_admit(unit, capacity(rows=1, blocks=1, running_rows=1))


def test_a_new_unit_leaves_a_block_for_every_eight_running_rows() -> None:
    unit = plain(row("a", prompt=2), runs=False)
    assert may_admit(unit, capacity(rows=1, blocks=1, running_rows=0))
    assert not may_admit(unit, capacity(rows=1, blocks=1, running_rows=1))
    assert may_admit(unit, capacity(rows=1, blocks=2, running_rows=8))
    assert not may_admit(unit, capacity(rows=1, blocks=2, running_rows=9))


@given(orders=st.lists(st.integers(0, 99), min_size=1, unique=True))
def test_the_victim_is_the_youngest(orders: list[int]) -> None:
    units = [plain(row(str(order)), order) for order in orders]
    assert next_victim(units).order == max(orders)


def test_a_unit_lists_the_rows_that_run() -> None:
    unit = pair(row("a"), row("a#"), leader_runs=False)
    assert names(unit.rows) == ["a", "a#"]
    assert names(unit.running_rows) == ["a#"]
    assert names(plain(row("a"), runs=False).running_rows) == []
