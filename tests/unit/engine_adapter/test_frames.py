"""RowReader: what a request wrote, read from its rows as they arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_adapter.families import FAMILIES
from engine_adapter.frames import RowReader, Rows
from engine_adapter.spec import Output, StreamSpec
from tests.unit.engine_adapter.oracle import Answer, Ask, answer, least_rows
from tests.unit.engine_adapter.specs import small_spec, specs
from tests.unit.engine_adapter.test_delay import chunk_sizes, in_chunks


def read(spec: StreamSpec, output: Output, pieces: list[Rows]) -> tuple[list[int], list[list[int]]]:
    reader = RowReader(spec, output)
    text: list[int] = []
    codes: list[list[int]] = []
    for piece in pieces:
        ids, frames = reader.push(piece)
        assert frames.shape[1:] == (spec.num_streams,)
        text += ids
        codes += frames.tolist()
    return text, codes


def written(spec: StreamSpec, output: Output, seed: int, end_rate: float) -> tuple[Answer, Rows]:
    room = 1 + least_rows(spec, output) + 20
    result = answer(spec, Ask(output, 1, room, seed=seed, end_rate=end_rate))
    return result, np.array(result.rows, dtype=np.int32)


@given(
    data=st.data(),
    seed=st.integers(0, 2**20),
    end_rate=st.sampled_from([0.0, 0.2, 0.9]),
    sizes=chunk_sizes,
)
@settings(max_examples=60)
def test_text_and_codes_are_those_defined_for_any_chunking(
    data: st.DataObject, seed: int, end_rate: float, sizes: list[int]
) -> None:
    spec = data.draw(specs)
    output: Output = data.draw(st.sampled_from(spec.outputs))
    result, rows = written(spec, output, seed, end_rate)
    assert read(spec, output, [rows]) == (result.text, result.codes)
    assert read(spec, output, in_chunks(rows, sizes)) == (result.text, result.codes)


@pytest.mark.parametrize(
    ("family", "output"),
    [(name, output) for name, spec in sorted(FAMILIES.items()) for output in spec.outputs],
)
def test_every_family_and_output_row_by_row(family: str, output: Output) -> None:
    spec = FAMILIES[family]
    result, rows = written(spec, output, seed=3, end_rate=0.1)
    assert bool(result.text) == ("text" in output)
    assert bool(result.codes) == ("audio" in output)
    assert read(spec, output, list(rows[:, None])) == (result.text, result.codes)


@pytest.mark.parametrize("boundary", ["forced", "sampled"])
@pytest.mark.parametrize("delays", [(0,), (0, 0), (0, 1), (0, 3, 1)])
def test_few_delays_or_none(delays: tuple[int, ...], boundary: str) -> None:
    """Without a delay the row of the end id carries no code of any stream."""
    spec = small_spec(delays, boundary)
    for output in spec.outputs:
        result, rows = written(spec, output, seed=4, end_rate=0.2)
        assert read(spec, output, [rows]) == (result.text, result.codes)


def test_codes_are_within_their_codebooks() -> None:
    spec = FAMILIES["bagpiper"]
    _, rows = written(spec, "audio", seed=1, end_rate=0)
    codes = np.array(read(spec, "audio", [rows])[1])
    assert codes.min() >= 0
    assert (codes < [stream.size for stream in spec.streams]).all()


def test_nothing_pushed_is_nothing_read() -> None:
    spec = FAMILIES["opuslm-dialogue"]
    assert read(spec, "text+audio", [np.empty((0, 9), dtype=np.int32)] * 2) == ([], [])
