"""The ledger notices whatever must not happen."""

from __future__ import annotations

import pytest

from cfg_pairing.ledger import PairLedger


def healthy() -> PairLedger:
    return PairLedger(admitted=9, joined=8, preempted=3, resumed=2, finished=4, aborted=2, failed=1)


def test_a_healthy_ledger_has_no_violations() -> None:
    assert PairLedger().violations(live=0) == []
    assert healthy().violations(live=2) == []


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ("rows_split", "1 rows were split"),
        ("unguided_frames", "1 frames were sampled unguided"),
        ("admitted", "10 admitted, but 7 ended and 2 live"),
        ("finished", "9 admitted, but 8 ended and 2 live"),
        ("aborted", "9 admitted, but 8 ended and 2 live"),
        ("failed", "9 admitted, but 8 ended and 2 live"),
    ],
)
def test_one_event_too_many_is_a_violation(event: str, told: str) -> None:
    ledger = healthy()
    ledger.count(event)
    assert ledger.violations(live=2) == [told]


@pytest.mark.parametrize(("event", "times"), [("joined", 2), ("resumed", 2)])
def test_more_joined_than_admitted_or_resumed_than_preempted(event: str, times: int) -> None:
    ledger = healthy()
    for _ in range(times):
        ledger.count(event)
    assert ledger.violations(live=2) == [
        "more joined than admitted, or more resumed than preempted"
    ]


@pytest.mark.parametrize("live", [1, 3])
def test_a_live_pair_too_few_or_too_many(live: int) -> None:
    assert healthy().violations(live) == [f"9 admitted, but 7 ended and {live} live"]


def test_several_violations_are_all_told() -> None:
    ledger = healthy()
    for event in ("rows_split", "unguided_frames", "admitted"):
        ledger.count(event)
    assert len(ledger.violations(live=2)) == 3


def test_counters_have_the_names_of_the_events() -> None:
    ledger = PairLedger()
    for event in ledger.to_dict():
        ledger.count(event)
    assert set(ledger.to_dict().values()) == {1}


def test_an_unknown_event_is_an_error() -> None:
    with pytest.raises(AttributeError):
        PairLedger().count("lost")
