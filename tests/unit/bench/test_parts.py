"""What the parts of the benchmark make of their measurements, and the smallest of them as such."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from bench.codecs import demo_codec, tiny
from bench.devices import Peak
from bench.findings import Row
from bench.gpu_components import components, measured, step_rows, vocoder_rows
from bench.parts import ablations, alignment, guidance, host, pairs, vocoder
from bench.setting import Setting
from engine_adapter.families import FAMILIES
from engine_adapter.heads import CodecHeads
from engine_adapter.tiny import make_tiny
from tests.reference.model import Model
from vocoder_service.schedule import WindowSchedule

SETTING = Setting("quick", "cpu")


def test_a_profile_chooses() -> None:
    assert SETTING.choose(1, 2) == 1
    assert Setting("full", "cpu").choose(1, 2) == 2


def test_halves_that_come_in_turn_are_together() -> None:
    halves = pairs.Halves()
    for _ in range(50):
        halves.add(0, 1)
        halves.add(1, 1)
    assert (halves.rows, halves.alone, halves.first_alone) == ([50, 50], 0, None)


def test_a_half_that_goes_on_alone_spoils_the_rest() -> None:
    halves = pairs.Halves()
    for half in [0, 1] * 10 + [0] * 6 + [1] * 6:
        halves.add(half, 1)
    assert halves.alone == 4
    assert halves.first_alone == 13
    assert halves.furthest == 6
    whole = answer([[1, 2]] * 3, preemptions=2)
    other = answer([[1, 2], [1, 3], [1, 2]])
    found = pairs.findings([halves], [whole, whole], [whole, other], blocks=5)
    independent, atomic = found.tables[0].rows
    assert (independent["spoilt requests"], independent["spoilt rows"]) == (1, 3)
    assert (atomic["spoilt requests"], atomic["spoilt rows"]) == (1, 1)
    assert atomic["preemptions"] == 4
    assert [verdict.met for verdict in found.verdicts] == [False, True]


def answer(rows: list[list[int]], preemptions: int = 0) -> Any:
    return SimpleNamespace(raw_ids=np.array(rows, np.int32), preemptions=preemptions)


@pytest.mark.parametrize(
    ("ours", "theirs", "first"),
    [
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]], None),
        ([[1, 2], [3, 4]], [[1, 2], [3, 5]], 1),
        ([[1, 2]], [[1, 2], [3, 5]], 1),
    ],
)
def test_the_first_row_that_differs(
    ours: list[list[int]], theirs: list[list[int]], first: int | None
) -> None:
    assert alignment.first_difference(np.array(ours), np.array(theirs)) == first


@pytest.mark.parametrize("family", list(FAMILIES))
def test_logits_of_both_sides_are_brought_into_one_order(family: str, tmp_path: Path) -> None:
    """Heads with the reference's weights give the reference's logits."""
    reference = Model(make_tiny(family, tmp_path / "model"))
    spec, width = reference.spec, reference._head.shape[1]
    heads = CodecHeads(spec, width, torch.float32)
    heads.take_head(reference._head)
    heads.stream_embedding.data.copy_(reference._stream_embedding)
    heads.finish_loading()
    context = reference.context()
    context.append([[spec.audio_begin, *[0] * (spec.num_streams - 1)]])
    logits = torch.cat([part.flatten(1) for part in heads(context.hidden()[None])], dim=1)
    ours, theirs = alignment.by_id(spec, logits[0], alignment.reference_logits(context, spec))
    assert len(ours) == sum(len(spec.candidates(s)) for s in range(spec.num_streams))
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_alignment_verdicts_are_of_float32() -> None:
    good = alignment.Aligned(None, [1e-6, 3e-6], [1.0, 1.0])
    late = alignment.Aligned(7, [1e-2], [2.0])
    exact = alignment.row("demo", "float32", [good, good])
    half = alignment.row("demo", "bfloat16", [good, late])
    assert (exact["first difference"], half["first difference"]) == ("none", "7")
    assert half["largest RMSE"] == pytest.approx(1e-2)
    assert all(verdict.met for verdict in alignment.findings([exact, half], {}).verdicts)
    worse = alignment.row("demo", "float32", [late])
    assert not any(verdict.met for verdict in alignment.findings([worse], {}).verdicts)


def test_host_verdicts_are_of_256_rows_and_of_the_growth_from_there() -> None:
    rows: list[Row] = [
        {"guidance": guidance, "rows": count, "outside ms": ms}
        for guidance, ms256, ms512 in (("off", 8.0, 15.0), ("on", 12.0, 30.0))
        for count, ms in ((1, 0.5), (256, ms256), (512, ms512))
    ]
    met = {verdict.name: verdict.met for verdict in host.findings([], rows).verdicts}
    assert list(met.values()) == [True, True, False, False]


def test_guided_steps_are_compared_with_plain_ones_of_as_many_rows() -> None:
    equal: list[Row] = [
        {"guidance": g, "rows": r, "engine CPU ms": ms}
        for g, r, ms in (("off", 8, 4.0), ("on", 16, 5.0), ("off", 16, 5.0), ("on", 32, 9.0))
    ]
    swept: list[Row] = [{"scale": 1.0, "word error rate %": 20.0}]
    [verdict] = guidance.findings(swept, equal, [], []).verdicts
    assert verdict.value == 1
    assert "16 rows" in verdict.name


def test_a_stream_is_cut_as_the_schedule_says() -> None:
    assert ablations.cut(WindowSchedule(8, 1.5, 64), 40) == [8, 12, 18, 2]
    assert ablations.cut(WindowSchedule(16, 1.0, 16), 32) == [16, 16]


def test_the_vocoders_cost_is_of_a_second_of_audio() -> None:
    with demo_codec("cpu") as subject:
        row = vocoder._cost(subject, "cpu")
        assert row["Hz"] == 16_000
        assert row["frames/s"] == pytest.approx(31.25)
        assert 0 < cast(float, row["ms per audio second"]) < 10_000
        batched = ablations._batched(subject, 2, "cpu")
    assert cast(float, batched["gain"]) > 0


def test_the_parameters_are_those_of_what_decodes() -> None:
    with tiny("dac", "cpu") as subject:
        assert subject.name == "dac, tiny"
        assert 1e4 < subject.parameters < 1e6


@pytest.mark.parametrize("family", ["demo", "bagpiper"])
def test_components_have_a_roofline(family: str) -> None:
    peak = Peak(flops=1e10, bandwidth=1e10, source="")
    found = [
        measured(part, "cpu", peak)
        for part in components(FAMILIES[family], 64, 4, torch.float32, "cpu")
    ]
    names = ["heads", "guidance", "drawing ids", "summed embeddings"]
    assert [row["part"] for row in found] == names
    assert all(cast(float, row["ms"]) > 0 and cast(float, row["roofline ms"]) > 0 for row in found)


def test_all_components_run_on_a_cpu_at_small_sizes() -> None:
    rows = step_rows("cpu", [2], ["bagpiper"], width=64)
    assert [row["rows"] for row in rows] == [2] * 4
    windows = vocoder_rows("cpu", [2], full_size=False)
    assert [row["part"] for row in windows] == [f"vocoder, {n} frames" for n in (8, 16, 64)]
