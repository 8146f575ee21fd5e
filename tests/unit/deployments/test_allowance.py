"""What a connection that speaks for long may have."""

import pytest

from deployments.speech.allowance import AHEAD_SECONDS, Allowance


def test_it_waits_for_whoever_listens_and_is_spent_in_the_end() -> None:
    allowance = Allowance(200)
    assert allowance.spend(AHEAD_SECONDS) == 0
    assert allowance.spend(15) == pytest.approx(15, abs=0.1)
    allowance.interrupt()
    assert allowance.spend(AHEAD_SECONDS) == 0
    assert allowance.left == 200 - 2 * AHEAD_SECONDS - 15
