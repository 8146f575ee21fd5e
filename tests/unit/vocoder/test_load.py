"""The share of its time that a decoder is busy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocoder_service.load import BusyShare


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_steady_work_is_measured_as_it_is(share: float) -> None:
    load = BusyShare()
    for step in range(1, 200):
        load.add(share * 0.1, step * 0.1)
    assert load.value(19.9) == pytest.approx(share, abs=0.01)


def test_it_fades_when_there_is_no_work() -> None:
    load = BusyShare()
    load.learn(0.8, 10.0)
    assert load.value(10.0) == 0.8
    assert load.value(12.0) == pytest.approx(0.8 / 2.718, abs=0.01)
    assert load.value(40.0) < 0.001


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), max_size=30))
def test_it_is_a_share(work: list[tuple[float, float]]) -> None:
    load, now = BusyShare(), 0.0
    for busy, idle in work:
        now += busy + idle
        load.add(busy, now)
        assert 0 <= load.value(now) <= 1
