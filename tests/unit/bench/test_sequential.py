"""The sequential loop generates what the model would: the reference's greedy rows."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

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
    unconditional = [0] * len(PROMPT)
    model = SequentialModel(directory, "float32")
    contexts = [PROMPT] if scale == 1 else [PROMPT, unconditional]
    rows = [row.tolist() for row in islice(model.generate(contexts, scale), FRAMES)]
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
