"""The sequential loop generates what the model would: the reference's greedy rows."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench.sequential import SequentialModel
from engine_adapter.spec import StreamSpec
from engine_adapter.tiny import make_tiny
from tests.reference.generate import Reference, ReferenceRequest, plain_rows

FRAMES = 12
PROMPT = [1, 40, 50, 60, 70]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_tiny("demo", tmp_path_factory.mktemp("demo"), seed=3)
    spec = StreamSpec.load(made)
    greedy = replace(spec.sampling["audio"], top_k=1)
    replace(spec, min_frames=2 * FRAMES, sampling={**spec.sampling, "audio": greedy}).save(made)
    return made


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_greedy_rows(directory: Path, scale: float) -> None:
    assert_equal(directory, scale)


@pytest.mark.parametrize("head_bias", ["all", "auxiliary"])
@pytest.mark.parametrize("pad_embedding", ["zero", "sum", "pad"])
def test_the_rules_of_every_family(directory: Path, pad_embedding: str, head_bias: str) -> None:
    spec = StreamSpec.load(directory)
    streams = tuple(replace(stream, pad_id=9 + s) for s, stream in enumerate(spec.streams))
    rules: Any = {"pad_embedding": pad_embedding, "head_bias": head_bias}
    replace(spec, streams=streams, **rules).save(directory)
    try:
        assert_equal(directory, 1.0)
    finally:
        spec.save(directory)


def test_a_batch_is_its_requests(directory: Path) -> None:
    model = SequentialModel(directory, "float32")
    prompts = [PROMPT, [1, 41, 52, 63, 74], [1, 99, 98, 97, 96]]
    together = list(islice(model.generate(prompts), FRAMES))
    for number, prompt in enumerate(prompts):
        alone = islice(model.generate([prompt]), FRAMES)
        assert [row[number].tolist() for row in together] == [row.tolist() for (row,) in alone]


def assert_equal(directory: Path, scale: float) -> None:
    unconditional = [0] * len(PROMPT)
    model = SequentialModel(directory, "float32")
    contexts = [PROMPT] if scale == 1 else [PROMPT, unconditional]
    guidance = None if scale == 1 else scale
    rows = [row.tolist() for (row,) in islice(model.generate(contexts, guidance), FRAMES)]
    expected = Reference(directory).generate(
        ReferenceRequest(
            plain_rows(PROMPT, model.spec.num_streams),
            cfg_scale=scale,
            unconditional_ids=unconditional if scale > 1 else None,
            temperature=0.0,
            max_frames=FRAMES,
        )
    )
    assert rows == expected.raw_ids[1 : 1 + FRAMES]
