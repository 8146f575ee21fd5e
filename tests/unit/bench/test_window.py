"""Step times from arrival times."""

import pytest

from bench.window import MeasurementError, Reading, Trajectory, decode_window


def at(seconds: float) -> Reading:
    """The engine is busy half of the time, its client a tenth."""
    return Reading(seconds, 100 + seconds / 2, 7 + seconds / 10)


def trajectory(start: float, step: float, rows: int, per_message: int = 1) -> Trajectory:
    made = Trajectory()
    for message in range(rows // per_message):
        made.add(at(start + step * per_message * (message + 1)), per_message)
    return made


def test_reached_is_the_message_that_brought_the_row() -> None:
    made = trajectory(0.0, 1.0, rows=6, per_message=3)
    assert [made.reached(row) for row in (1, 3, 4, 6)] == [3.0, 3.0, 6.0, 6.0]
    with pytest.raises(MeasurementError, match="row 7 never came"):
        made.reached(7)


def test_a_steady_request() -> None:
    window = decode_window([trajectory(5.0, 0.25, rows=40)], first=4, last=36, least_steps=16)
    assert window.step_ms == pytest.approx(250)
    assert window.engine_cpu_ms == pytest.approx(125)
    assert window.client_cpu_ms == pytest.approx(25)
    assert window.steps == 32
    assert window.rows_per_message == 1


def test_slow_prefill_and_fast_tail_do_not_count() -> None:
    made = trajectory(0.0, 9.0, rows=3)
    for step in range(20):
        made.add(at(27 + 0.5 * (step + 1)), 1)
    for step in range(5):
        made.add(at(37 + 0.01 * (step + 1)), 1)
    window = decode_window([made], first=3, last=23, least_steps=20)
    assert window.step_ms == pytest.approx(500)


def test_only_steps_with_all_requests_in_flight_count() -> None:
    # The second request joins 10 steps later, and steps take twice as long from then on.
    early = trajectory(0.0, 1.0, rows=10)
    for step in range(30):
        early.add(at(10 + 2.0 * (step + 1)), 1)
    late = trajectory(10.0, 2.0, rows=40)
    window = decode_window([early, late], first=2, last=38, least_steps=10)
    assert window.step_ms == pytest.approx(2000)
    assert window.steps == 26  # from the late one's row 2 to the early one's row 38


def test_merged_messages_keep_the_step_time() -> None:
    window = decode_window(
        [trajectory(0.0, 0.1, rows=60, per_message=4)], first=8, last=56, least_steps=40
    )
    assert window.step_ms == pytest.approx(100)
    assert window.rows_per_message == 4


def test_requests_that_hardly_overlap_fail() -> None:
    apart = [trajectory(0.0, 1.0, rows=20), trajectory(15.0, 1.0, rows=20)]
    with pytest.raises(MeasurementError, match="in flight for"):
        decode_window(apart, first=1, last=20, least_steps=8)
