"""Frames reach the vocoder when they complete a window, and all of them do."""

import numpy as np
import pytest
from numpy.typing import NDArray

from deployments.frame_groups import FrameGroups
from vocoder_service.windows import WindowSchedule

SCHEDULE = WindowSchedule(first=3, growth=2.0, maximum=8)
RIGHT_CONTEXT = 2
ENDS = [5, 11, 19, 27]  # of the windows 3, 6, 8, 8 with their right context


def codes(count: int) -> NDArray[np.int32]:
    return np.arange(count * 2, dtype=np.int32).reshape(count, 2)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 13, 30])
def test_a_group_is_sent_as_soon_as_it_completes_a_window(size: int) -> None:
    groups = FrameGroups(SCHEDULE, RIGHT_CONTEXT)
    everything = codes(30)
    sent: list[NDArray[np.int32]] = []
    for start in range(0, 30, size):
        before = sum(map(len, sent))
        group = groups.add(everything[start : start + size])
        arrived = min(30, start + size)
        complete = any(before < end <= arrived for end in ENDS)
        assert (group is not None) == complete
        if group is not None:
            sent.append(group)
            assert sum(map(len, sent)) == arrived
    rest = groups.rest()
    if rest is not None:
        sent.append(rest)
    np.testing.assert_array_equal(np.concatenate(sent), everything)


def test_nothing_is_left_where_nothing_came() -> None:
    groups = FrameGroups(SCHEDULE, RIGHT_CONTEXT)
    assert groups.add(codes(0)) is None
    assert groups.rest() is None
