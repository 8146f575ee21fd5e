"""Slots and history keep every live request's data, whoever comes and goes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine_adapter.slots import FrameHistory, SlotMap

LENGTH = 6


class Requests(RuleBasedStateMachine):
    """Requests write their rows one by one; each must always read its own."""

    @initialize(capacity=st.integers(1, 3), streams=st.integers(1, 3))
    def start(self, capacity: int, streams: int) -> None:
        self.slots = SlotMap(capacity)
        self.auxiliary = streams - 1
        self.history = FrameHistory(capacity, LENGTH, streams)
        self.written: dict[str, list[list[int]]] = {}
        self.names = 0
        self.values = 0

    def rows(self, count: int) -> list[list[int]]:
        """Rows in which no value occurs twice in a test."""
        first = self.values
        self.values += count * self.auxiliary
        return np.arange(first, self.values).reshape(count, self.auxiliary).tolist()

    @rule(length=st.integers(1, LENGTH - 1), plain=st.booleans())
    def add(self, length: int, plain: bool) -> None:
        name = str(self.names)
        self.names += 1
        before = self.slots.capacity
        slot = self.slots.add(name)
        assert slot < self.slots.capacity
        if self.slots.capacity > before:
            assert len(self.written) == before  # only when none was free
            self.history.grow(self.slots.capacity)
        rows = [[0] * self.auxiliary] * length if plain else self.rows(length)
        prompt = None if plain else np.array(rows, np.int32).reshape(length, self.auxiliary)
        self.history.put_prompt(slot, length, prompt)
        self.written[name] = rows

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.written)))
        assert self.slots[name] == self.slots.remove(name)
        del self.written[name]

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        names = sorted(n for n, rows in self.written.items() if len(rows) < LENGTH)
        batch = data.draw(st.permutations(names))[: data.draw(st.integers(0, len(names)))]
        rows = self.rows(len(batch))
        positions = np.array([len(self.written[n]) for n in batch], dtype=np.int32)
        auxiliary = np.array(rows, dtype=np.int32).reshape(len(batch), self.auxiliary)
        self.history.put(self.slots.of(batch), positions, auxiliary)
        for name, row in zip(batch, rows, strict=True):
            self.written[name].append(row)

    @invariant()
    def every_request_reads_what_it_wrote(self) -> None:
        if not hasattr(self, "slots"):
            return
        assert len(self.slots) == len(self.written)
        taken = {self.slots[name] for name in self.written}
        assert len(taken) == len(self.written)
        for name, rows in self.written.items():
            assert name in self.slots
            slots = self.slots.of([name]).repeat(len(rows))
            read = self.history.gather(slots, np.arange(len(rows)))
            assert read.dtype == np.int32
            assert read.tolist() == rows


TestRequests = Requests.TestCase
TestRequests.settings = settings(max_examples=40, stateful_step_count=25)


def test_slots_of_a_batch_come_in_its_order() -> None:
    slots = SlotMap(4)
    for name in "abc":
        slots.add(name)
    batch = slots.of(["c", "a"])
    assert batch.dtype == np.int64
    assert batch.tolist() == [slots["c"], slots["a"]]
    assert slots.of([]).tolist() == []


def test_unknown_requests_are_errors() -> None:
    slots = SlotMap(2)
    assert "a" not in slots
    for use in (slots.remove, slots.__getitem__, lambda name: slots.of([name])):
        with pytest.raises(KeyError):
            use("a")


@given(st.integers(1, 5), st.integers(0, 20))
def test_capacity_doubles_when_it_is_full(capacity: int, count: int) -> None:
    slots = SlotMap(capacity)
    taken = [slots.add(str(i)) for i in range(count)]
    assert taken == list(range(count))
    while capacity < count:
        capacity *= 2
    assert slots.capacity == capacity


def test_growing_touches_no_memory() -> None:
    """A long history is address space, not memory, until somebody writes."""
    history = FrameHistory(8, 50_000, 9)
    history.put_prompt(3, 4, np.full((4, 8), 7, dtype=np.int32))
    tracemalloc.start()
    history.grow(16)
    history.grow(32)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 25 * 50_000 * 8 * 4  # the slots that were added, and no copy
    assert history.gather(np.array([3, 31]), np.array([2, 2]))[:, 0].tolist() == [7, 0]
