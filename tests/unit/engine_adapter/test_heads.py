"""The codec-slice heads are the plain head of every stream, for what can be sampled."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine_adapter.families import FAMILIES
from engine_adapter.heads import CodecHeads, group_streams
from engine_adapter.spec import StreamSpec
from tests.unit.engine_adapter.model import HIDDEN, PlainModel, candidate_logits
from tests.unit.engine_adapter.specs import small_spec

HEAD_BIASES = ["all", "auxiliary"]


def every_stream(heads: CodecHeads, hidden: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Candidates and their logits, padding included, per stream in order."""
    parts: list[tuple[Tensor, Tensor]] = []
    for index, (group, logits) in enumerate(zip(heads.groups, heads(hidden), strict=True)):
        assert group.first == len(parts)
        assert logits.dtype == torch.float32
        heads.bar_padding(index, logits)
        parts += [(heads.ids(index)[s], logits[:, s]) for s in range(group.shape[0])]
    return parts


def assert_plain(
    spec: StreamSpec, dtype: torch.dtype = torch.float32, within: float = 1e-4
) -> None:
    model = PlainModel(spec, dtype=dtype)
    hidden = torch.randn((5, HIDDEN), generator=torch.Generator().manual_seed(1)).to(dtype)
    streams = every_stream(model.codec_heads, hidden)
    assert len(streams) == spec.num_streams
    for s, (ids, logits) in enumerate(streams):
        wanted = spec.candidates(s)
        assert ids[: len(wanted)].tolist() == wanted
        assert (logits[:, len(wanted) :] == float("-inf")).all()
        plain = candidate_logits(model, hidden, s)
        assert (logits[:, : len(wanted)] - plain).abs().max() < within


@pytest.mark.parametrize("head_bias", HEAD_BIASES)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_they_equal_the_full_head_of_each_stream(family: str, head_bias: str) -> None:
    assert_plain(dataclasses.replace(FAMILIES[family], head_bias=head_bias))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_they_do_so_in_half_precision(dtype: torch.dtype) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # as vLLM does while it builds a model
    try:
        assert_plain(FAMILIES["demo"], dtype, within=0.2)
    finally:
        torch.set_default_dtype(before)


sizes = st.lists(st.sampled_from([1, 2, 3, 7, 8, 9, 11, 40]), min_size=1, max_size=6)


@given(
    sizes=sizes,
    boundary=st.sampled_from(["forced", "sampled"]),
    head_bias=st.sampled_from(HEAD_BIASES),
)
@settings(max_examples=50)
def test_streams_of_any_sizes(sizes: list[int], boundary: str, head_bias: str) -> None:
    delays = (0,) * len(sizes)
    assert_plain(small_spec(delays, boundary, sizes=tuple(sizes), head_bias=head_bias))


@given(sizes=sizes)
def test_groups_hold_neighbours_and_little_padding(sizes: list[int]) -> None:
    spec = small_spec((0,) * len(sizes), sizes=tuple(sizes))
    groups = group_streams(spec)
    streams = [g.first + s for g in groups for s in range(g.shape[0])]
    assert streams == list(range(spec.num_streams))
    for group in groups:
        assert group.ids.numel() <= 1.25 * sum(group.sizes)
        assert max(group.sizes) == group.shape[1]
    ends = groups[0].ids[0, groups[0].end_columns]
    assert ends.tolist() == list(spec.audio_end_ids)


def test_families_are_grouped_as_they_should() -> None:
    groups = {name: [g.shape for g in group_streams(spec)] for name, spec in FAMILIES.items()}
    assert groups["bagpiper"] == [(8, 1027)]
    assert groups["demo"] == [(8, 257)]
    assert groups["opuslm"] == groups["opuslm-dialogue"] == [(1, 5001), (8, 1024)]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_end_columns_are_the_end_ids_of_stream_0(family: str) -> None:
    spec = FAMILIES[family]
    first, *others = group_streams(spec)
    assert first.ids[0, first.end_columns].tolist() == list(spec.audio_end_ids)
    assert all(len(group.ids[0, group.end_columns]) == 0 for group in others)


def test_a_padded_column_never_wins() -> None:
    """Padding repeats the first candidate, which would win here as often as it stands there."""
    spec = small_spec((0, 0), sizes=(9, 8), audio_end_ids=(3,))
    model = PlainModel(spec)
    (group,) = model.codec_heads.groups
    assert group.sizes == (10, 8)
    hidden = model.lm_head[spec.streams[1].first_id][None] * 100
    ((_, logits),) = every_stream(model.codec_heads, hidden)[1:]
    assert logits.argmax(-1).tolist() == [0]
    assert torch.isfinite(logits).sum().item() == 8
