"""The reference does what docs/generation.md says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from engine_adapter.checkpoint import ModelDirectory
from engine_adapter.families import FAMILIES
from engine_adapter.spec import StreamSpec
from engine_adapter.tiny import make_tiny
from tests.reference import Reference, ReferenceRequest, stable_requests
from tests.reference.generate import plain_rows, text_prompt
from tests.reference.margin import margin
from tests.reference.model import Model
from tests.reference.requests import THRESHOLD, required_margin
from tests.reference.sample import Sampling, draw

BAGPIPER, DIALOGUE, DEMO = FAMILIES["bagpiper"], FAMILIES["opuslm-dialogue"], FAMILIES["demo"]
Load = Callable[[str], Reference]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The tiny checkpoint of a family, made once."""
    paths: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in paths:
            paths[family] = make_tiny(family, tmp_path_factory.mktemp(family))
        return paths[family]

    return make


@pytest.fixture(scope="module")
def load(directory: Callable[[str], Path]) -> Load:
    """The reference of a family, loaded once."""
    references: dict[str, Reference] = {}

    def get(family: str) -> Reference:
        if family not in references:
            references[family] = Reference(directory(family))
        return references[family]

    return get


def request(spec: StreamSpec, seed: int = 0, **values: Any) -> ReferenceRequest:
    """A request whose prompt is five text ids."""
    assert spec.text is not None
    ids = [spec.text.first_id + 97 + i for i in range(5)]
    default = ReferenceRequest(plain_rows(ids, spec.num_streams), seed=seed, max_frames=12)
    return replace(default, **values)


def stopped(reference: Reference, **values: Any) -> ReferenceRequest:
    """The first request whose audio the model ended itself, after a few frames."""
    for seed in range(200):
        candidate = request(reference.spec, seed, **{"max_frames": 60, **values})
        result = reference.generate(candidate)
        if result.finish_reason == "stop" and len(result.codes) > 10:
            return candidate
    raise AssertionError("the tiny model never ends audio")


@pytest.mark.parametrize("family", ["demo", "opuslm-dialogue"])
@pytest.mark.parametrize("ended_by", ["model", "max_frames"])
def test_forced_boundary(family: str, ended_by: str, load: Load) -> None:
    reference = load(family)
    spec = reference.spec
    result = reference.generate(
        stopped(reference) if ended_by == "model" else request(spec, max_frames=4, temperature=1.5)
    )
    assert result.finish_reason == ("stop" if ended_by == "model" else "length")
    begin, *audio = result.raw_ids
    assert begin == [spec.audio_begin] + [0] * (spec.num_streams - 1)
    frames, last_delay = len(result.codes), spec.streams[-1].delay
    assert len(audio) == frames + last_delay
    primary = [row[0] for row in audio]
    assert primary[frames] in spec.audio_end_ids
    assert primary[frames + 1 :] == [spec.drain_id] * (last_delay - 1)
    for s, stream in enumerate(spec.streams):
        column = [row[s] for row in audio]
        spoken = column[stream.delay : stream.delay + frames]
        assert [i - stream.first_id for i in spoken] == [codes[s] for codes in result.codes]
        assert all(0 <= codes[s] < stream.size for codes in result.codes)
        if s > 0:
            silent = column[: stream.delay] + column[stream.delay + frames :]
            assert set(silent) <= {stream.pad_id}


@pytest.mark.parametrize("ended_by", ["model", "max_frames"])
def test_sampled_boundary(ended_by: str, load: Load) -> None:
    reference = load("bagpiper")
    result = reference.generate(
        stopped(reference) if ended_by == "model" else request(BAGPIPER, max_frames=4)
    )
    audio = result.raw_ids[1:]
    frames = len(result.codes)
    assert len(audio) == frames + 7 + 1
    ends = [row[0] in BAGPIPER.audio_end_ids for row in audio]
    assert ends.index(True) == len(audio) - 1
    if ended_by == "max_frames":
        assert (frames, audio[-1][0]) == (4, BAGPIPER.audio_end_ids[0])
    for row in audio:
        for i, stream in list(zip(row, BAGPIPER.streams, strict=True))[1:]:
            assert i == stream.pad_id or stream.first_id <= i < stream.end
    for t, codes in enumerate(result.codes):
        for s, stream in enumerate(BAGPIPER.streams):
            i = audio[t + stream.delay][s]
            assert codes[s] == (0 if i == stream.pad_id else i - stream.first_id)


def test_sampled_boundary_ended_before_the_first_frame(load: Load) -> None:
    reference = load("bagpiper")
    for seed in range(100):
        result = reference.generate(request(BAGPIPER, seed))
        if len(result.raw_ids) <= 1 + 7:
            assert result.codes == []
            assert result.finish_reason == "stop"
            return
    raise AssertionError("no audio was that short")


@pytest.mark.parametrize("family", ["bagpiper", "opuslm-dialogue"])
def test_text_then_audio(family: str, load: Load) -> None:
    """The end of text is replaced by the bridge, ids exactly, whoever ended it."""
    reference = load(family)
    spec = reference.spec
    assert spec.text is not None
    seen = set()
    for seed in range(40):
        result = reference.generate(
            request(spec, seed, output="text+audio", max_frames=1, max_text_tokens=8)
        )
        text, after = len(result.text_ids), len(result.text_ids) + len(spec.text_to_audio)
        zeros = [0] * (spec.num_streams - 1)
        assert result.raw_ids[:text] == [[i, *zeros] for i in result.text_ids]
        assert result.raw_ids[text:after] == [[i, *zeros] for i in spec.text_to_audio]
        assert all(spec.text.first_id <= i < spec.text.end for i in result.text_ids)
        assert 1 <= text <= 8
        if text == 8:
            assert result.finish_reason == "length"
        seen.add(text == 8)
        if len(seen) == 2:
            return
    raise AssertionError("text always ended the same way")


def test_text(load: Load) -> None:
    reference = load("opuslm-dialogue")
    reasons = set()
    for seed in range(40):
        result = reference.generate(request(DIALOGUE, seed, output="text", max_text_tokens=6))
        written = [row[0] for row in result.raw_ids]
        end = [] if result.finish_reason == "length" else [5]
        assert written == result.text_ids + end
        assert (len(result.text_ids) == 6) >= (result.finish_reason == "length")
        assert result.codes == []
        reasons.add(result.finish_reason)
    assert reasons == {"stop", "length"}


def test_min_frames_and_min_tokens(directory: Callable[[str], Path], tmp_path: Path) -> None:
    """However much the end is preferred, it does not come before its time."""
    made = directory("opuslm-dialogue")
    for name in ("config.json", "speech.json"):
        shutil.copy(made / name, tmp_path)
    weights = dict(ModelDirectory.open(made).tensors())
    weights["lm_head.weight"][list(DIALOGUE.audio_end_ids), -1] = 1000  # a bias, see tiny.py
    save_file(weights, tmp_path / "model.safetensors")
    result = Reference(tmp_path).generate(request(DIALOGUE, output="text+audio"))
    assert len(result.text_ids) == 1
    assert len(result.codes) == DIALOGUE.min_frames == 3
    assert result.finish_reason == "stop"


@pytest.mark.parametrize("family", ["demo", "bagpiper"])
def test_guidance(family: str, load: Load) -> None:
    reference = load(family)
    spec = reference.spec
    plain = request(spec, cfg_scale=1.0, temperature=1.2)
    unguided = reference.generate(plain)
    assert reference.generate(replace(plain, unconditional_ids=[1, 2])) == unguided
    guided = replace(plain, cfg_scale=3.0)
    results = [reference.generate(guided)]
    results += [reference.generate(replace(guided, unconditional_ids=ids)) for ids in ([7], [8, 9])]
    assert len({str(r.raw_ids) for r in [unguided, *results]}) == 4
    ids = [0] * len(plain.prompt) if family == "bagpiper" else [1]
    assert reference.generate(replace(guided, unconditional_ids=ids)) == results[0]
    # Equal contexts: w c + (1 - w) c = c.
    same = replace(guided, unconditional_ids=[int(row[0]) for row in plain.prompt])
    assert reference.generate(same).raw_ids == unguided.raw_ids


def test_guidance_by_default(directory: Callable[[str], Path], tmp_path: Path) -> None:
    """The spec's, for audio, where the request does not say."""
    made = directory("bagpiper")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(made / name, tmp_path)
    replace(BAGPIPER, cfg_scale=3.0).save(tmp_path)
    plain, guided = Reference(made), Reference(tmp_path)
    silent = request(BAGPIPER)
    assert guided.generate(silent) == plain.generate(replace(silent, cfg_scale=3.0))
    assert guided.generate(replace(silent, cfg_scale=1.0)) == plain.generate(silent)
    assert guided.generate(silent).cfg_scale == 3
    written = guided.generate(replace(silent, output="text", max_text_tokens=3))
    assert written.cfg_scale == 1


def test_text_prompts() -> None:
    def ids(*arguments: Any) -> list[int]:
        return [row[0] for row in text_prompt(*arguments)]

    assert ids(DEMO, "audio", [20, 21]) == ids(DEMO, "audio", [20, 21], "rms") == [1, 5, 20, 21]
    assert ids(DEMO, "audio", [20, 21], "slt") == [1, 6, 20, 21]
    assert ids(BAGPIPER, "text", [300]) == [1, 5, 7, 300, 2, 6, 7]


def test_unconditional_zeros_are_as_long_as_what_precedes_audio(load: Load) -> None:
    reference = load("bagpiper")
    guided = request(BAGPIPER, output="text+audio", cfg_scale=2.0, max_text_tokens=9)
    result = reference.generate(guided)
    before = len(guided.prompt) + len(result.text_ids) + 2
    assert reference.generate(replace(guided, unconditional_ids=[0] * before)) == result
    other = reference.generate(replace(guided, unconditional_ids=[0] * (before + 1)))
    assert other.text_ids == result.text_ids
    assert other.raw_ids != result.raw_ids


def test_greedy_is_the_limit_of_cold_sampling(load: Load) -> None:
    reference = load("demo")
    greedy = reference.generate(request(DEMO, temperature=0.0))
    cold = reference.generate(request(DEMO, seed=3, temperature=1e-6, top_k=0))
    assert greedy.raw_ids == cold.raw_ids
    assert greedy == reference.generate(request(DEMO, seed=4, temperature=0.0))


def test_seeds_and_prompts_matter(load: Load) -> None:
    reference = load("demo")
    first = request(DEMO)
    result = reference.generate(first)
    assert reference.generate(first) == result
    assert reference.generate(replace(first, seed=2**63 - 1)).raw_ids != result.raw_ids
    other = replace(first, prompt=[*first.prompt[:-1], [int(first.prompt[-1][0]) + 1, *[0] * 7]])
    assert reference.generate(other).raw_ids != result.raw_ids


def test_auxiliary_streams_of_the_prompt_matter(load: Load) -> None:
    reference = load("demo")
    rows = [[s.first_id + t for s in DEMO.streams] for t in range(6)]
    first = request(DEMO, prompt=rows, temperature=1.0)
    result = reference.generate(first)
    for t, s in ((0, 1), (3, 4), (5, 7)):
        changed = [list(row) for row in rows]
        changed[t][s] += 100
        assert reference.generate(replace(first, prompt=changed)).codes != result.codes


def test_pad_embedding(directory: Callable[[str], Path]) -> None:
    """Id 0 on an auxiliary stream is nothing, or an embedding as any."""
    for family in ("demo", "opuslm-dialogue"):
        model = Model(directory(family))
        streams = model.spec.num_streams
        text = [20000 if family != "demo" else 20]
        row, zero = model.embed(plain_rows([*text, 0], streams))
        alone = model._embedding[torch.tensor([*text, 0])]
        pads = 0 if family == "demo" else (streams - 1) * alone[1]
        torch.testing.assert_close(row, alone[0] + pads)
        torch.testing.assert_close(zero, alone[1] + pads)


@pytest.mark.parametrize("family", ["bagpiper", "opuslm", "opuslm-dialogue"])
def test_stream_embedding_of_text(family: str, directory: Callable[[str], Path]) -> None:
    """Stream 0 has its embedding in text as in audio; of Bagpiper in neither."""
    made = directory(family)
    model, tensors = Model(made), dict(ModelDirectory.open(made).tensors())
    hidden = torch.randn(64, generator=torch.Generator().manual_seed(0))
    added = hidden if family == "bagpiper" else hidden + tensors["stream_embedding.weight"][0]
    head = tensors["lm_head.weight"]
    torch.testing.assert_close(model.text_logits(hidden), head[model.text_ids] @ added)
    torch.testing.assert_close(model.audio_logits(hidden, 0), head[model.audio_ids[0]] @ added)


def test_room(directory: Callable[[str], Path]) -> None:
    """The request's rows fill the model length exactly, tail included."""
    longest = Reference(directory("demo"), max_model_len=24)
    result = longest.generate(request(DEMO, max_frames=100, temperature=1.5, top_k=0))
    assert len(result.raw_ids) == 24 - 5
    assert (len(result.codes), result.finish_reason) == (24 - 5 - 1 - 7, "length")
    with pytest.raises(ValueError, match="no room"):
        Reference(directory("demo"), max_model_len=13).generate(request(DEMO))


def test_refuses(load: Load) -> None:
    with pytest.raises(ValueError, match="does not write 'text'"):
        load("demo").generate(request(DEMO, output="text"))
    with pytest.raises(ValueError, match="below 1"):
        load("demo").generate(request(DEMO, cfg_scale=0.5))
    with pytest.raises(ValueError, match="needs unconditional_ids"):
        load("opuslm-dialogue").generate(request(DIALOGUE, cfg_scale=2.0))


SAMPLINGS = [
    Sampling(0.0, 0, 1.0),
    Sampling(0.8, 0, 1.0),
    Sampling(0.8, 5, 1.0),
    Sampling(1.1, 0, 0.7),
    Sampling(0.7, 12, 0.8),
]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_perturbations_within_the_margin_change_nothing(sampling: Sampling) -> None:
    """And a little beyond it, the worst one of many does."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.arange(20)
    changed = 0
    for trial in range(20):
        logits = torch.randn(20, generator=generator)
        decision = draw(logits, ids, sampling, seed=trial, step=3, stream=1)
        firm = margin(logits, decision, sampling, at_most=1.0)
        signs = torch.randn(50, 20, generator=generator).sign()
        for sign in signs:
            within = logits + 0.99 * firm * sign
            assert draw(within, ids, sampling, trial, 3, 1).index == decision.index
        for sign in signs:
            beyond = logits + 1.3 * firm * sign
            if draw(beyond, ids, sampling, trial, 3, 1).index != decision.index:
                changed += 1
                break
    assert changed > 12


def test_filters() -> None:
    logits = torch.tensor([0.0, 3.0, 1.0, 2.0])
    ids = torch.arange(4)

    def kept(top_k: int, top_p: float) -> list[int]:
        kept = draw(logits, ids, Sampling(1.0, top_k, top_p), 0, 0, 0).kept
        return kept.nonzero()[:, 0].tolist()

    # Probabilities .64, .24, .09, .03 in descending order.
    assert kept(0, 1.0) == [0, 1, 2, 3]
    assert kept(2, 1.0) == [1, 3]
    assert kept(9, 1.0) == [0, 1, 2, 3]
    assert kept(0, 0.64) == [1]
    assert kept(0, 0.65) == [1, 3]
    assert kept(0, 0.9) == [1, 2, 3]
    # top_p counts what top_k has kept: .73 and .27.
    assert kept(2, 0.7) == [1]
    assert kept(2, 0.999) == [1, 3]


@pytest.mark.parametrize("family", ["demo", "opuslm-dialogue"])
def test_stable_requests(family: str, load: Load) -> None:
    reference = load(family)
    cases = stable_requests(reference, 16, seed=1, max_frames=(4, 8), max_text_tokens=(4, 8))
    assert len(cases.kept) == 16
    for case in cases.kept:
        assert case.result.margin >= required_margin(case.result.cfg_scale) >= THRESHOLD
    requests = [case.request for case in cases.kept]
    assert {r.output for r in requests} == set(reference.spec.prompts)
    assert {case.result.cfg_scale > 1 for case in cases.kept} == {True, False}
    assert {r.temperature == 0 for r in requests} == {True, False}
    assert any(max(map(max, (row[1:] for row in r.prompt))) > 0 for r in requests)
    again = stable_requests(reference, 16, seed=1, max_frames=(4, 8), max_text_tokens=(4, 8))
    assert again == cases
    choosy = stable_requests(reference, 6, max_frames=(3, 3), threshold=4e-3, guided=False)
    assert choosy.rejected > 0
    assert all(case.result.cfg_scale == 1 for case in choosy.kept)
    long = stable_requests(reference, 3, outputs=("audio",), max_frames=(6, 6), min_rows=14)
    assert all(len(case.result.codes) == 6 for case in long.kept)
