"""A step of the worker: whoever is in the batch, each request writes what it defines."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine_adapter import step as step_module
from engine_adapter.families import FAMILIES
from engine_adapter.phases import Finish
from engine_adapter.sampling import SamplingBatch, sample
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import Output, StreamSpec
from engine_adapter.step import rehearse
from tests.unit.engine_adapter.model import HIDDEN, PlainModel
from tests.unit.engine_adapter.oracle import Ask, answer
from tests.unit.engine_adapter.specs import AUDIO_BEGIN, END, TEXT_FIRST, small_spec
from tests.unit.engine_adapter.worker import ByHand, Worker, companion_of, hidden_state

REASON = {"stop": Finish.STOP, "length": Finish.LENGTH}


def run_together(spec: StreamSpec, seed: int, max_frames: int, max_text_tokens: int) -> None:
    """Every output, plain and guided, in one batch of changing rows: each as by hand."""
    worker, random = Worker(spec), Random(seed)
    units: dict[str, list[str]] = {}
    scales = {}
    wires = {}
    for written in spec.outputs:
        for scale in (1.0, 1.7) if "audio" in written else (1.0,):
            name = f"{written} {scale}"
            scales[name] = scale
            wires[name] = worker.add(
                name,
                output=written,
                seed=seed,
                cfg_scale=scale,
                unconditional_ids=[1, 2],
                max_frames=max_frames if "audio" in written else None,
                max_text_tokens=max_text_tokens if "text" in written else None,
            )
            units[name] = [name]
    live = set(units)
    while live:
        chosen = random.sample(sorted(live), random.randint(1, len(live)))
        batch = [row for name in chosen for row in units[name]]
        random.shuffle(batch)
        output = worker.sample(batch)
        for name in chosen:
            if worker.written[name].finish != Finish.RUNNING:
                live.discard(name)
                for row in units[name]:
                    worker.remove(row)
            elif len(units[name]) == 1 < scales[name] and output.audio_next[batch.index(name)]:
                units[name].append(worker.add_companion(name, wires[name]))
                worker.sample([companion_of(name)])
    for name, wire in wires.items():
        sampling = {m: wire.sampling_of(m) for m in spec.sampling}
        ask = Ask(wire.output, 3, wire.room, max_frames, max_text_tokens)
        expected = answer(spec, ask, ByHand(worker.model, name, seed, sampling, scales[name]))
        assert worker.written[name].rows == expected.rows
        assert worker.written[name].finish == REASON[expected.reason]
        if scales[name] > 1:
            rows = worker.written[companion_of(name)].rows
            assert rows == expected.rows[-len(rows) :]
            assert rows[0][0] == spec.audio_begin


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_requests_of_a_family_write_what_they_define(family: str) -> None:
    run_together(FAMILIES[family], seed=5, max_frames=3, max_text_tokens=2)


@given(
    delays=st.lists(st.integers(0, 3), max_size=2),
    boundary=st.sampled_from(["forced", "sampled"]),
    head_bias=st.sampled_from(["all", "auxiliary"]),
    bridge=st.sampled_from([(AUDIO_BEGIN,), (END, AUDIO_BEGIN)]),
    seed=st.integers(0, 50),
)
@settings(max_examples=15)
def test_so_do_requests_of_odd_families(
    delays: list[int], boundary: str, head_bias: str, bridge: tuple[int, ...], seed: int
) -> None:
    spec = small_spec((0, *delays), boundary, head_bias=head_bias, text_to_audio=bridge)
    run_together(spec, seed, max_frames=4, max_text_tokens=4)


SPEC = small_spec(delays=(0, 1, 2), sizes=(20, 20, 20))


def test_a_row_is_held_while_its_partner_is_not_in_the_step() -> None:
    together, apart = Worker(SPEC), Worker(SPEC)
    pair = together.add_pair("a", seed=1)
    assert apart.add_pair("a", seed=1) == pair
    for step in range(4):
        together.sample(pair)
        for absent in ([pair[0]], [pair[1]], [pair[0]]):
            output = apart.sample(absent)
            assert output.audio.tolist() == [True]
            assert output.emitted.tolist() == [False]
            assert output.frames == 0
        for late in pair:
            assert apart.sample(pair, unfinished=[late]).emitted.tolist() == [False, False]
        output = apart.sample(pair[:: (-1) ** step])
        assert output.emitted.tolist() == [True, True]
        assert output.frames == 1
    assert apart.written == together.written


def test_a_companion_writes_the_rows_of_its_leader() -> None:
    worker = Worker(SPEC)
    pair = worker.add_pair("a", seed=1, max_frames=2)
    while worker.written["a"].finish == Finish.RUNNING:
        output = worker.sample(pair)
        assert output.rows[0].tolist() == output.rows[1].tolist()
        assert output.finish[1] == Finish.RUNNING  # the leader's end ends it
    assert worker.written[pair[1]].rows == worker.written["a"].rows
    assert worker.written["a"].finish == Finish.LENGTH


def test_a_leader_in_audio_waits_for_a_companion_that_still_opens_it() -> None:
    """Both end their prefill in one step, the leader having written ``audio_begin`` before."""
    worker = Worker(SPEC)
    wire = worker.add("a", cfg_scale=2.0, unconditional_ids=[1, 2], seed=1)
    worker.sample(["a"])
    pair = ["a", worker.add_companion("a", wire)]
    output = worker.sample(pair)
    assert output.emitted.tolist() == [False, True]
    assert output.rows[1].tolist() == [AUDIO_BEGIN, 0, 0]
    worker.sample(pair)
    assert worker.written[pair[1]].rows == worker.written["a"].rows


def test_a_companion_in_audio_waits_for_a_leader_that_still_opens_it() -> None:
    worker = Worker(SPEC)
    wire = worker.add("a", cfg_scale=2.0, unconditional_ids=[1, 2], seed=1)
    pair = ["a", worker.add_companion("a", wire)]
    worker.sample([pair[1]])
    output = worker.sample(pair)
    assert output.emitted.tolist() == [True, False]
    worker.sample(pair)
    assert worker.written[pair[1]].rows == worker.written["a"].rows


@pytest.mark.parametrize("scale", [1 + 1e-9, 1 + 1e-7, 1.001])
def test_the_smallest_guidance_holds_rows_like_any_other(scale: float) -> None:
    worker = Worker(SPEC)
    wire = worker.add("a", cfg_scale=scale, unconditional_ids=[1, 2], seed=1)
    worker.sample(["a"])
    assert worker.sample(["a"]).emitted.tolist() == [not wire.guided]


def test_equal_contexts_guide_nothing() -> None:
    """w h + (1 - w) h is h: a pair of the same hidden states writes the unguided request."""
    guided = Worker(SPEC, hidden_state=lambda name, step: hidden_state(name[:1], step))
    plain = Worker(SPEC)
    pair = guided.add_pair("a", scale=3.0, seed=4)
    plain.add("a", seed=4)
    plain.sample(["a"])
    assert guided.run(pair, 6) == plain.run(["a"], 6)


def test_a_scale_of_one_is_the_plain_request() -> None:
    one, plain = Worker(SPEC), Worker(SPEC)
    assert not one.add("a", seed=4, cfg_scale=1.0, unconditional_ids=[1]).guided
    plain.add("a", seed=4)
    assert one.run(["a"], 8) == plain.run(["a"], 8)


def test_guidance_changes_something() -> None:
    guided, plain = Worker(SPEC), Worker(SPEC)
    pair = guided.add_pair("a", scale=3.0, seed=4)
    plain.add("a", seed=4)
    plain.sample(["a"])
    assert guided.run(pair, 6) != plain.run(["a"], 6)


@pytest.mark.parametrize("removed", [0, 1])
def test_the_one_that_is_left_of_a_pair_writes_nothing_more(removed: int) -> None:
    worker = Worker(SPEC)
    pair = worker.add_pair("a", seed=1)
    worker.run(pair, 2)
    worker.remove(pair[removed])
    # A guided request takes the slot that was given back, and waits for a companion.
    worker.add("b", seed=2, cfg_scale=2.0, unconditional_ids=[1])
    worker.sample(["b"])
    for batch in ([pair[1 - removed], "b"], ["b", pair[1 - removed]], ["b"]):
        assert not worker.sample(batch).emitted.any()
    assert worker.written["b"].rows == [[AUDIO_BEGIN, 0, 0]]
    worker.remove(pair[1 - removed])
    assert len(worker.step) == 1


def test_a_new_request_in_a_used_slot_starts_afresh() -> None:
    used, fresh = Worker(SPEC), Worker(SPEC)
    for name in used.add_pair("a", seed=1):
        used.remove(name)
    for worker in (used, fresh):
        worker.add("b", seed=9)
    assert used.run(["b"], 8) == fresh.run(["b"], 8)


def test_a_name_used_again_is_a_new_request() -> None:
    used, fresh = Worker(SPEC), Worker(SPEC)
    for name in "ab":
        used.add(name, seed=1)
    used.run(["a", "b"], 3)
    for name in "ba":
        used.remove(name)
    for worker in (used, fresh):
        worker.add("b", seed=2)
        worker.add("a", seed=3)
    assert used.run(["a", "b"], 5) == fresh.run(["a", "b"], 5)
    assert used.written == fresh.written


def test_removing_what_is_unknown_does_nothing() -> None:
    worker = Worker(SPEC)
    worker.remove("a")
    assert len(worker.step) == 0


def test_unfinished_prefills_write_nothing() -> None:
    worker = Worker(SPEC)
    for name in "abc":
        worker.add(name, output="text" if name == "b" else "audio", seed=1)
    output = worker.sample(["a", "b", "c"], unfinished=["a", "b"])
    assert output.emitted.tolist() == [False, False, True]
    assert [len(worker.written[name].rows) for name in "abc"] == [0, 0, 1]


def test_a_step_tells_what_its_rows_are() -> None:
    worker = Worker(small_spec(text_to_audio=(AUDIO_BEGIN,)))
    worker.add("audio", seed=1, max_frames=1)
    worker.add("text", output="text", seed=1)
    both = worker.add("both", output="text+audio", seed=1, max_text_tokens=1)
    assert both.output == "text+audio"
    pair = worker.add_pair("pair", seed=1)
    batch = ["audio", "text", "both", *pair]
    output = worker.sample(batch)
    assert output.audio.tolist() == [False, False, False, True, True]
    assert output.audio_next.tolist() == [True, False, False, True, True]
    assert output.frames == 1  # the pair counts once
    output = worker.sample(batch)
    assert output.audio.tolist() == [True, False, False, True, True]
    assert output.audio_next.tolist() == [True, False, True, True, True]
    assert output.frames == 2


def test_min_frames_and_min_tokens_mask_the_ends() -> None:
    spec = small_spec((0,), sizes=(1,), min_frames=4, min_tokens=4, text_end_ids=(END,))
    worker = Worker(spec)
    names = [f"{output} {seed}" for output in ("audio", "text") for seed in range(6)]
    for name in names:
        output: Output = "audio" if name.startswith("audio") else "text"
        worker.add(name, output=output, seed=int(name[-1]), temperature=50.0, top_k=0)
    worker.run(names, 4)
    for name in names:
        rows = worker.written[name].rows
        assert all(row[0] not in spec.audio_end_ids for row in rows)


def test_padding_takes_no_place_among_the_top_k() -> None:
    """Stream 1 has fewer candidates than its group is wide."""
    spec = small_spec((0, 0), sizes=(2, 2), audio_end_ids=(END,))
    worker = Worker(spec)
    assert [group.sizes for group in worker.model.codec_heads.groups] == [(3, 2)]
    names = [f"r{seed}" for seed in range(30)]
    for seed, name in enumerate(names):
        worker.add(name, seed=seed, temperature=5.0, top_k=2, top_p=1.0)
    worker.run(names, 2)
    for seed, name in enumerate(names):
        by_hand = ByHand(worker.model, name, seed, {"audio": SamplingDefaults(5.0, 2)})
        assert worker.written[name].rows[1][1] == by_hand.audio(1, 1, end_allowed=False)


def test_the_input_is_the_prompt_and_then_what_was_written() -> None:
    """In chunks of any size, in any order of rows, and again from the start after a preemption."""
    worker = Worker(SPEC, max_length=20)
    wide = [[TEXT_FIRST, *(s.first_id + k for s in SPEC.streams[1:])] for k in range(5)]
    prompts: dict[str, list[list[int]]] = {"a": wide, "b": [[1, 0, 0]] * 3}
    for name, prompt in prompts.items():
        worker.add(name, prompt_ids=prompt, seed=3)
    worker.run(["a", "b"], 6)
    known = {n: [row[1:] for row in prompts[n] + worker.written[n].rows] for n in prompts}
    for order in ("ab", "ba", "a", "b"):
        for start, count in ((0, 3), (2, 1), (4, 4), (0, 8)):
            counts = [count + (name == "b") for name in order]
            ids = worker.step.auxiliary_ids(
                list(order),
                np.full(len(order), start, dtype=np.int32),
                np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
            )
            wanted = [
                row
                for name, tokens in zip(order, counts, strict=True)
                for row in known[name][start : start + tokens]
            ]
            assert ids.dtype == np.int32
            assert ids.tolist() == wanted


def test_more_requests_than_rows_keep_their_state() -> None:
    """Preempted requests keep their slots, so there may be more than ``max_rows``."""
    names = [f"r{i}" for i in range(60)]
    crowd = Worker(SPEC, max_rows=1)
    pair = crowd.add_pair("a", seed=1)
    crowd.run(pair, 2)
    for seed, name in enumerate(names):
        crowd.add(name, seed=seed)
    crowd.run([*pair, *names], 3)
    alone = Worker(SPEC)
    assert crowd.written["a"].rows == alone.run(alone.add_pair("a", seed=1), 5)
    for seed, name in enumerate(names[:: len(names) // 3]):
        alone.add(name, seed=seed * (len(names) // 3))
        assert crowd.written[name].rows == alone.run([name], 3)


def test_an_empty_batch_writes_nothing() -> None:
    worker = Worker(SPEC)
    worker.add("a", seed=1)
    worker.sample(["a"])
    worker.remove("a")
    output = worker.sample([])
    assert output.rows.shape == (0, SPEC.num_streams)


def test_the_rehearsal_draws_among_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []

    def noted(logits: Tensor, ids: Tensor, batch: SamplingBatch) -> Tensor:
        assert (batch.top_k == 0).all()
        assert (batch.top_p < 1).all()
        drawn.append(logits.shape)
        return sample(logits, ids, batch)

    monkeypatch.setattr(step_module, "sample", noted)
    model = PlainModel(SPEC)
    rehearse(SPEC, torch.randn(5, HIDDEN), model)
    assert drawn[0] == (5, 1, SPEC.vocab_size)
    assert drawn[1:] == [(5, *group.shape) for group in model.codec_heads.groups]
