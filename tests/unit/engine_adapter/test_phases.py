"""PhaseTable writes, for every slot of any batch, what the definition says."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_adapter.families import FAMILIES
from engine_adapter.phases import Finish, Phase, PhaseTable
from engine_adapter.spec import Output, StreamSpec
from tests.unit.engine_adapter.oracle import Answer, Ask, Draws, answer, least_rows
from tests.unit.engine_adapter.specs import (
    ANSWER,
    AUDIO_BEGIN,
    DRAIN,
    END,
    OTHER_END,
    STREAMS_FIRST,
    TEXT_FIRST,
    TURN,
    small_spec,
    specs,
)

REASONS = {Finish.STOP: "stop", Finish.LENGTH: "length"}


@dataclass
class Driver:
    """Advances requests in a table, as a sampler does that knows nothing but the table."""

    spec: StreamSpec
    table: PhaseTable
    asks: dict[int, Ask] = field(default_factory=dict)  # by slot
    answers: dict[int, Answer] = field(default_factory=dict)
    live: set[int] = field(default_factory=set)

    def start(self, slot: int, ask: Ask) -> None:
        self.table.start(
            slot,
            output=ask.output,
            prompt_rows=ask.prompt_rows,
            room=ask.room,
            max_frames=ask.max_frames,
            max_text_tokens=ask.max_text_tokens,
        )
        self.asks[slot], self.answers[slot] = ask, Answer()
        self.live.add(slot)

    def step(self, batch: list[int]) -> None:
        slots = np.array(batch, dtype=np.int64)
        phases, allowed = self.table.phases(slots), self.table.end_allowed(slots)
        generated, lengths = self.table.generated(slots), self.table.lengths(slots)
        sampled = np.zeros((len(batch), self.spec.num_streams), dtype=np.int32)
        for i, slot in enumerate(batch):
            result, ask = self.answers[slot], self.asks[slot]
            assert generated[i] == len(result.rows)
            assert lengths[i] == ask.prompt_rows + len(result.rows)
            sampled[i] = self._sample(slot, Phase(phases[i]), bool(allowed[i]))
        rows, finish = self.table.advance(slots, sampled)
        assert rows.dtype == np.int32
        for i, slot in enumerate(batch):
            self.answers[slot].rows.append(rows[i].tolist())
            if finish[i] != Finish.RUNNING:
                self.answers[slot].reason = REASONS[Finish(finish[i])]
                self.live.discard(slot)
            done = self.table.phases(slots[i : i + 1])[0] == Phase.DONE
            assert done == (slot not in self.live)

    def _sample(self, slot: int, phase: Phase, end_allowed: bool) -> list[int]:
        """Garbage wherever the phase forces the id."""
        draws, step = Draws(self.spec, self.asks[slot]), len(self.answers[slot].rows)
        streams = range(self.spec.num_streams)
        if phase in (Phase.AUDIO, Phase.TAIL):
            return [draws.audio(step, s, end_allowed) for s in streams]
        garbage = [draws.anything(step, s) for s in streams]
        return [draws.text(step, end_allowed), *garbage[1:]] if phase == Phase.TEXT else garbage


def run_alone(spec: StreamSpec, ask: Ask) -> Answer:
    driver = Driver(spec, PhaseTable(spec, 1))
    driver.start(0, ask)
    while driver.live:
        driver.step([0])
    return driver.answers[0]


@st.composite
def asks(draw: st.DrawFn, spec: StreamSpec) -> Ask:
    """Requests with little room, low limits, or neither."""
    output: Output = draw(st.sampled_from(spec.outputs))
    prompt, spare = draw(st.integers(1, 5)), draw(st.integers(0, 12) | st.just(60))
    return Ask(
        output,
        prompt,
        room=prompt + least_rows(spec, output) + spare,
        max_frames=draw(st.none() | st.integers(1, 12)),
        max_text_tokens=draw(st.none() | st.integers(1, 12)),
        seed=draw(st.integers(0, 2**20)),
        end_rate=draw(st.sampled_from([0.0, 0.1, 0.5])),
    )


@given(st.data())
@settings(max_examples=60)
def test_a_batch_in_any_order_writes_what_each_request_defines(data: st.DataObject) -> None:
    spec = data.draw(specs)
    requests = data.draw(st.lists(asks(spec), min_size=1, max_size=5))
    random = Random(data.draw(st.integers(0, 999)))
    size = len(requests)
    driver = Driver(spec, PhaseTable(spec, size))
    waiting = list(zip(random.sample(range(size), size), requests, strict=True))
    while waiting or driver.live:
        if waiting and (not driver.live or random.random() < 0.3):
            driver.start(*waiting.pop())
        if random.random() < 0.05:
            size += 3
            driver.table.grow(size)
        driver.step(random.sample(sorted(driver.live), random.randint(1, len(driver.live))))
    for slot, ask in driver.asks.items():
        expected = answer(spec, ask)
        assert driver.answers[slot].rows == expected.rows
        assert driver.answers[slot].reason == expected.reason


@given(st.data())
@settings(max_examples=60)
def test_a_request_stays_in_its_room_and_audio_ends_with_a_whole_tail(
    data: st.DataObject,
) -> None:
    spec = data.draw(specs)
    ask = data.draw(asks(spec))
    rows = run_alone(spec, ask).rows
    assert ask.prompt_rows + len(rows) <= ask.room
    if ask.output == "text":
        return
    audio = rows[1 + max(i for i, row in enumerate(rows) if row[0] == spec.audio_begin) :]
    (end,) = (t for t, row in enumerate(audio) if row[0] in spec.audio_end_ids)
    if spec.boundary == "sampled":
        assert end == len(audio) - 1
        return
    assert len(audio) == max(end + 1, end + spec.max_delay)
    for s, stream in enumerate(spec.streams[1:], start=1):
        codes = [row[s] for row in audio[stream.delay : stream.delay + end]]
        assert len(codes) == end
        assert all(stream.first_id <= code < stream.end for code in codes)
        silent = audio[: stream.delay] + audio[stream.delay + end :]
        assert all(row[s] == stream.pad_id for row in silent)
    assert all(row[0] == spec.drain_id for row in audio[end + 1 :])


CODE = [STREAMS_FIRST + 1, STREAMS_FIRST + 5, STREAMS_FIRST + 10]  # code 0 of three streams
PADS = [STREAMS_FIRST, 0, STREAMS_FIRST + 9]


def scripted(spec: StreamSpec, ask: Ask, samples: list[list[int]]) -> tuple[list[list[int]], str]:
    """Rows and finish reason of a request that is given these samples, and then code 0."""
    table = PhaseTable(spec, 1)
    driver = Driver(spec, table)
    driver.start(0, ask)
    rows = []
    slot = np.zeros(1, dtype=np.int64)
    for step in range(100):
        sample = samples[step] if step < len(samples) else CODE
        row, finish = table.advance(slot, np.array([sample], dtype=np.int32))
        rows.append(row[0].tolist())
        if finish[0] != Finish.RUNNING:
            return rows, REASONS[Finish(finish[0])]
    raise AssertionError("it does not end")


def test_forced_boundaries_row_by_row() -> None:
    rows, reason = scripted(
        small_spec(delays=(0, 1, 2)),
        Ask("audio", prompt_rows=1, room=99),
        [[0, 0, 0], CODE, CODE, [OTHER_END, *CODE[1:]]],
    )
    assert rows == [
        [AUDIO_BEGIN, 0, 0],
        [CODE[0], PADS[1], PADS[2]],
        [CODE[0], CODE[1], PADS[2]],
        [OTHER_END, CODE[1], CODE[2]],  # the end id stands where frame 2 would be
        [DRAIN, PADS[1], CODE[2]],
    ]
    assert reason == "stop"


def test_sampled_boundaries_force_nothing() -> None:
    samples = [[0, 0, 0], [CODE[0], *PADS[1:]], CODE, [PADS[0], *CODE[1:]], [END, *CODE[1:]]]
    rows, reason = scripted(
        small_spec(delays=(0, 1, 2), boundary="sampled"), Ask("audio", 1, room=99), samples
    )
    assert rows == [[AUDIO_BEGIN, 0, 0], *samples[1:]]
    assert reason == "stop"


def test_the_end_of_text_becomes_the_bridge() -> None:
    text = [TEXT_FIRST, 7, 7]
    rows, _ = scripted(
        small_spec(), Ask("text+audio", 1, room=99, max_frames=1), [text, text, [END, 7, 7]]
    )
    assert [row[0] for row in rows[:5]] == [TEXT_FIRST, TEXT_FIRST, TURN, ANSWER, AUDIO_BEGIN]
    assert all(row[1:] == [0, 0] for row in rows[:5])


def test_text_alone_writes_its_end_id() -> None:
    rows, reason = scripted(
        small_spec(), Ask("text", 1, room=99), [[TEXT_FIRST, 7, 7], [END, 7, 7]]
    )
    assert rows == [[TEXT_FIRST, 0, 0], [END, 0, 0]]
    assert reason == "stop"


@pytest.mark.parametrize(("most", "room"), [(2, 99), (None, 3)])
def test_text_stops_on_the_row_that_reaches_a_limit(most: int | None, room: int) -> None:
    text = [TEXT_FIRST, 0, 0]
    rows, reason = scripted(
        small_spec(), Ask("text", 1, room, max_text_tokens=most), [text, text, text]
    )
    assert (len(rows), reason) == (2, "length")


def test_an_end_id_on_the_last_allowed_text_row_is_a_stop() -> None:
    ask = Ask("text", 1, room=99, max_text_tokens=2)
    rows, reason = scripted(small_spec(), ask, [[TEXT_FIRST, 0, 0], [END, 0, 0]])
    assert (len(rows), reason) == (2, "stop")


@pytest.mark.parametrize("boundary", ["forced", "sampled"])
@pytest.mark.parametrize("frames", [1, 3])
def test_max_frames_is_exact_and_forces_the_first_end_id(boundary: str, frames: int) -> None:
    spec = small_spec(delays=(0, 1, 2), boundary=boundary, min_frames=2)
    rows, reason = scripted(spec, Ask("audio", 1, room=99, max_frames=frames), [])
    assert len(rows) == 1 + spec.audio_rows(frames)
    end = frames + (0 if boundary == "forced" else 2)
    assert [row[0] for row in rows].index(spec.audio_end_ids[0]) == 1 + end
    assert reason == "length"


def test_text_that_hits_its_limit_makes_the_request_one_of_length() -> None:
    spec = small_spec(delays=(0,), text_to_audio=(AUDIO_BEGIN,))
    samples = [[TEXT_FIRST], [TEXT_FIRST], [CODE[0]], [END]]
    rows, reason = scripted(spec, Ask("text+audio", 1, 99, max_text_tokens=1), samples)
    assert [row[0] for row in rows] == [TEXT_FIRST, AUDIO_BEGIN, CODE[0], END]
    assert reason == "length"


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_follower_walks_with_its_leader(family: str) -> None:
    """It takes the leader's phase and counts its own rows."""
    spec = FAMILIES[family]
    table = PhaseTable(spec, 5)
    leader, follower = np.array([3]), np.array([1])
    start = {"output": "audio", "room": 99, "max_frames": 2, "max_text_tokens": None}
    table.start(3, prompt_rows=9, **start)  # type: ignore[arg-type]
    table.start(1, prompt_rows=4, **start)  # type: ignore[arg-type]
    sampled = np.array([[s.first_id for s in spec.streams]], dtype=np.int32)
    both = np.concatenate([leader, follower])
    rows, _ = table.advance(both, sampled.repeat(2, axis=0))
    assert rows[0].tolist() == rows[1].tolist() == [spec.audio_begin] + [0] * (len(rows[0]) - 1)
    for step in range(1, 1 + spec.audio_rows(2)):
        assert table.generated(both).tolist() == [step, step]
        assert table.lengths(both).tolist() == [9 + step, 4 + step]
        _, finish = table.advance(leader, sampled)
        table.follow(follower, leader)
        assert table.phases(leader) == table.phases(follower)
        assert table.end_allowed(leader) == table.end_allowed(follower)
    assert finish[0] == Finish.LENGTH
    assert table.phases(follower)[0] == Phase.DONE


def test_new_slots_are_done_until_a_request_starts() -> None:
    table = PhaseTable(small_spec(), 2)
    table.grow(5)
    assert table.phases(np.arange(5)).tolist() == [Phase.DONE] * 5


@pytest.mark.parametrize("boundary", ["forced", "sampled"])
def test_a_used_slot_starts_afresh(boundary: str) -> None:
    spec = small_spec(boundary=boundary)
    driver = Driver(spec, PhaseTable(spec, 1))
    cut_short = Ask("text+audio", 2, 40, max_frames=1, max_text_tokens=2, end_rate=0.0)
    ends_itself = Ask("text+audio", 2, 40, seed=1, end_rate=0.9)
    for ask, reason in ((cut_short, "length"), (ends_itself, "stop"), (cut_short, "length")):
        driver.start(0, ask)
        while driver.live:
            driver.step([0])
        assert driver.answers[0].rows == answer(spec, ask).rows
        assert driver.answers[0].reason == reason
