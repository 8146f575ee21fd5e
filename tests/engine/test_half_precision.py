"""In bfloat16 ids may differ from the reference's; everything they obey does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engine.harness import HALF, RICHEST, Harness, Setup, requests_of
from tests.reference.requests import Case

pytestmark = pytest.mark.engine


@RICHEST
def test_every_kind_of_request(harness_for: Callable[[Setup], Harness], cases: list[Case]) -> None:
    harness = harness_for(HALF)
    spec = harness.engine.spec
    results = harness.run(harness.together(requests_of(cases)))
    for case, result in zip(cases, results, strict=True):
        assert "audio" in case.request.output or len(result.codes) == 0
        assert len(result.codes) <= case.request.max_frames
        for stream, column in zip(spec.streams, result.codes.T, strict=True):
            assert ((column >= 0) & (column < stream.size)).all()
        assert result.finish_reason in ("stop", "length")
    assert sum(len(result.codes) for result in results) > 0
    assert harness.counters()["joined"] > 0
