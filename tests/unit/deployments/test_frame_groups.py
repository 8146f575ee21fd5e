"""Frames reach the vocoder when they complete a window, and all of them do."""

import numpy as np
import pytest
from numpy.typing import NDArray

from deployments.replica.frame_groups import FrameGroups
from vocoder_service.schedule import WindowSchedule

SCHEDULE = WindowSchedule(first=3, growth=2.0, maximum=8)
RIGHT_CONTEXT = 2


def codes(count: int) -> NDArray[np.int32]:
    return np.arange(count * 2, dtype=np.int32).reshape(count, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 13, 30])
def test_a_group_is_sent_as_soon_as_it_completes_a_window(size: int) -> None:
    groups = FrameGroups(SCHEDULE, RIGHT_CONTEXT)
    everything = codes(60)
    wanted = [3 + RIGHT_CONTEXT, 6, *[8] * 8]
    sent: list[NDArray[np.int32]] = []
    for start in range(0, 60, size):
        group = groups.add(everything[start : start + size], load=0.0)
        arrived = min(60, start + size)
        waiting = arrived - sum(map(len, sent))
        assert (group is not None) == (waiting >= wanted[len(sent)])
        if group is not None:
            assert len(group) == waiting
            sent.append(group)
    rest = groups.rest()
    if rest is not None:
        sent.append(rest)
    np.testing.assert_array_equal(np.concatenate(sent), everything)


def test_groups_are_larger_while_the_vocoder_is_busy() -> None:
    idle, busy = (FrameGroups(SCHEDULE, RIGHT_CONTEXT) for _ in range(2))
    assert idle.add(codes(3 + RIGHT_CONTEXT), load=0.0) is not None
    assert busy.add(codes(3 + RIGHT_CONTEXT), load=1.0) is None
    assert busy.add(codes(5), load=1.0) is not None


def test_nothing_is_left_where_nothing_came() -> None:
    groups = FrameGroups(SCHEDULE, RIGHT_CONTEXT)
    assert groups.add(codes(0), load=0.0) is None
    assert groups.rest() is None
