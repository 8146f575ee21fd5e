"""Steps are counted by duration, as by Prometheus's buckets: a bound belongs to its class."""

from hypothesis import given
from hypothesis import strategies as st

from cfg_pairing.step_times import BOUNDS, StepTimes


def test_steps_are_counted_by_duration() -> None:
    times = StepTimes()
    for seconds, tokens in ((0.0001, 7), (BOUNDS[2], 1), (BOUNDS[2] + 1e-6, 1), (9.0, 100)):
        times.add(seconds, tokens)
    figures = times.to_dict()
    assert (figures["steps"], figures["step_tokens"]) == (4, 109)
    classes = figures["step_classes"]
    assert [classes[i] for i in (0, 2, 3, len(BOUNDS))] == [1, 1, 1, 1]


@given(st.lists(st.floats(0, 5)))
def test_every_step_is_in_one_class(durations: list[float]) -> None:
    times = StepTimes()
    for seconds in durations:
        times.add(seconds, 1)
    figures = times.to_dict()
    assert sum(figures["step_classes"]) == figures["steps"] == len(durations)
    assert figures["step_seconds"] == sum(durations)
    below = 0
    for bound, count in zip(BOUNDS, figures["step_classes"], strict=False):
        below += count
        assert below == sum(seconds <= bound for seconds in durations)


def test_figures_that_were_given_out_do_not_change() -> None:
    times = StepTimes()
    before = times.to_dict()
    times.add(0.1, 1)
    assert before == StepTimes().to_dict()
