"""Where requests go: rows, KV memory, prefixes, and what happens between two reports."""

from __future__ import annotations

from collections import Counter
from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfg_pairing.routing import REQUEST_STEPS, Demand, Load, LoadReport, Loads, rank

ONE, TWO = Demand(1), Demand(2)


def test_the_emptiest_comes_first() -> None:
    loads = {"a": Load(6, 8, 0), "b": Load(2, 8, 0), "c": Load(4, 8, 0)}
    assert rank(loads, ONE, "r") == ["b", "c", "a"]


def test_empty_is_relative_to_the_capacity() -> None:
    assert rank({"small": Load(3, 4, 0), "large": Load(6, 16, 0)}, ONE, "r")[0] == "large"


def test_memory_counts_where_it_is_scarcer() -> None:
    assert rank({"long": Load(2, 8, 0.8), "short": Load(5, 8, 0.1)}, ONE, "r")[0] == "short"


def test_one_more_pair_is_weighed_as_two_rows() -> None:
    # Two more rows would fill the small one; one more would not.
    loads = {"small": Load(2, 4, 0), "large": Load(13, 16, 0)}
    assert rank(loads, ONE, "r")[0] == "small"
    assert rank(loads, TWO, "r")[0] == "large"


def test_equals_are_drawn_by_request() -> None:
    loads = {name: Load(0, 8, 0) for name in "abc"}
    firsts = Counter(rank(loads, ONE, f"request {i}")[0] for i in range(300))
    assert min(firsts.values()) > 70
    assert rank(loads, ONE, "the same") == rank(loads, ONE, "the same")


def test_a_voice_has_a_home_among_equals() -> None:
    loads = {name: Load(3, 8, 0) for name in "abcd"}
    homes = {rank(loads, Demand(1, b"rms"), f"request {i}")[0] for i in range(20)}
    assert len(homes) == 1


def test_a_home_may_be_fuller_by_what_its_prefix_saves() -> None:
    demand = Demand(1, b"a recorded voice", prefix_rows=2 * REQUEST_STEPS)
    home = rank({name: Load(0, 8, 0) for name in "ab"}, demand, "r")[0]
    other = "b" if home == "a" else "a"
    assert rank({home: Load(2, 8, 0), other: Load(0, 8, 0)}, demand, "r")[0] == home
    assert rank({home: Load(3, 8, 0), other: Load(0, 8, 0)}, demand, "r")[0] == other


def test_a_home_that_is_lost_moves_only_what_lived_there() -> None:
    voices = [Demand(1, f"voice {i}".encode()) for i in range(200)]
    four = {name: Load(0, 8, 0) for name in "abcd"}
    three = {name: load for name, load in four.items() if name != "d"}
    for voice in voices:
        before, after = rank(four, voice, "r")[0], rank(three, voice, "r")[0]
        assert before in ("d", after)


def test_who_may_be_dead_comes_last_however_empty_and_whoever_lives_there() -> None:
    loads = {"dead": Load(0, 8, 0, doubtful=True), "full": Load(8, 8, 0)}
    for i in range(20):  # of some of these voices the dead one is the home
        assert rank(loads, Demand(1, f"voice {i}".encode(), 2**20), "r") == ["full", "dead"]


def test_who_stops_to_report_while_others_go_on_is_in_doubt() -> None:
    loads: Loads[str] = Loads(capacity=8)
    for second in range(6):
        loads.report("lives", LoadReport(second, 4, 8, 0), now=second)
        loads.report("dead", LoadReport(min(second, 2), 0, 8, 0), now=second)
        doubtful = [
            loads.load(name, now=0).doubtful for name in ("lives", "dead", "not heard of yet")
        ]
        assert doubtful == [False, second == 5, False]
    loads.report("dead", LoadReport(3, 0, 8, 0), now=6)
    assert not loads.load("dead", now=0).doubtful


def test_nobody_is_in_doubt_where_all_are_silent() -> None:
    """The one who passes the reports on may be late."""
    loads: Loads[str] = Loads(capacity=8)
    for name in "ab":
        loads.report(name, LoadReport(1, 0, 8, 0), now=0)
    loads.report("a", LoadReport(2, 0, 8, 0), now=60)
    loads.report("b", LoadReport(2, 0, 8, 0), now=60)
    assert [loads.load(name, now=0).doubtful for name in "ab"] == [False, False]


def test_a_burst_between_two_reports_is_spread() -> None:
    loads: Loads[str] = Loads(capacity=64)
    loads.retain("ab")
    for name in "ab":
        loads.report(name, LoadReport(1, 0, 64, 0), now=0)
    for i in range(40):
        best = rank({n: loads.load(n, now=0) for n in "ab"}, TWO, f"r{i}")[0]
        loads.intend(i, best, 2, now=0)
    assert [loads.load(n, now=0).rows for n in "ab"] == [40, 40]


def test_a_request_counts_once_from_intent_to_end() -> None:
    loads: Loads[str] = Loads(capacity=8)
    loads.intend("key", "a", 2, now=0)
    assert loads.load("a", now=0).rows == 2
    loads.intend("key", "b", 2, now=0)  # the first was full
    assert (loads.load("a", now=0).rows, loads.load("b", now=0).rows) == (0, 2)
    loads.routed("key", "b", "id", 2)
    assert loads.load("b", now=0).rows == 2
    loads.completed("a", "id", now=0)  # its refusal
    loads.completed("b", "id", now=0)
    assert loads.load("b", now=0).rows == 0


def test_an_intent_that_came_to_nothing_is_forgotten() -> None:
    loads: Loads[str] = Loads(capacity=8)
    loads.intend("left", "a", 2, now=0)
    assert (loads.load("a", now=1).rows, loads.load("a", now=3).rows) == (2, 0)
    loads.intend("other", "b", 1, now=3)
    assert loads.load("a", now=3).rows == 0


def test_a_request_may_end_before_it_is_known_to_have_been_taken() -> None:
    """So it is with refusals: if they counted for ever, a replica that refused would stay full."""
    loads: Loads[str] = Loads(capacity=8)
    for i in range(20):
        loads.intend(i, "a", 2, now=i)
        loads.completed("a", f"id {i}", now=i)
        loads.routed(i, "a", f"id {i}", 2)
    assert loads.load("a", now=20).rows == 0


def test_what_a_replica_did_not_take_counts_when_it_takes_it_later() -> None:
    loads: Loads[str] = Loads(capacity=8)
    loads.completed("a", "id", now=0)  # it was full
    loads.completed("a", "other", now=60)
    loads.routed("key", "a", "id", 2)
    assert loads.load("a", now=60).rows == 2


def test_whose_engine_is_dead_says_so() -> None:
    loads: Loads[str] = Loads(capacity=8)
    loads.report("a", LoadReport(1, 0, 8, 0), now=0)
    loads.report("b", LoadReport(1, 0, 8, 0, lives=False), now=0)
    assert [loads.load(name, now=0).doubtful for name in "ab"] == [False, True]


def test_one_request_may_be_several_calls() -> None:
    loads: Loads[str] = Loads(capacity=8)
    loads.routed("1", "a", "id", 1)
    loads.routed("2", "a", "id", 2)
    loads.completed("a", "id", now=0)
    assert loads.load("a", now=0).rows == 2


def test_a_report_says_what_others_have_sent() -> None:
    loads: Loads[str] = Loads(capacity=8)
    loads.routed("1", "a", "mine", 2)
    loads.report("a", LoadReport(1, rows=5, capacity=16, kv_share=0.5), now=0)
    assert loads.load("a", now=0) == Load(5, 16, 0.5)
    loads.routed("2", "a", "next", 1)
    loads.report("a", LoadReport(1, rows=5, capacity=16, kv_share=0.5), now=0)  # the same again
    assert loads.load("a", now=0).rows == 6
    assert loads.load("a", now=0).kv_share == pytest.approx(0.6)
    loads.completed("a", "mine", now=0)
    assert loads.load("a", now=0).rows == 4


def test_a_replica_that_is_gone_takes_its_requests_along() -> None:
    loads: Loads[str] = Loads(capacity=8)
    loads.routed("1", "a", "mine", 2)
    loads.retain(["b"])
    loads.completed("a", "mine", now=0)
    loads.retain(["a", "b"])
    assert loads.load("a", now=0).rows == 0


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_a_guided_mix_keeps_replicas_even(seed: int, guided: float) -> None:
    """Two routers over three replicas that report now and then; what counts is rows."""
    random = Random(seed)
    names = "abc"
    routers: list[Loads[str]] = [Loads(capacity=64) for _ in range(2)]
    held: list[tuple[int, str, str, int]] = []
    truth = dict.fromkeys(names, 0)
    spreads = []
    for i in range(300):
        router = random.randrange(2)
        demand = TWO if random.random() < guided else ONE
        loads = {name: routers[router].load(name, now=i) for name in names}
        best = rank(loads, demand, f"{i}")[0]
        routers[router].routed(i, best, f"{i}", demand.rows)
        held.append((router, best, f"{i}", demand.rows))
        truth[best] += demand.rows
        if len(held) > 60:
            router, replica, request_id, rows = held.pop(random.randrange(len(held)))
            routers[router].completed(replica, request_id, now=i)
            truth[replica] -= rows
        if i % 10 == 9:
            for name in names:
                for one in routers:
                    one.report(name, LoadReport(i, truth[name], 64, 0), now=i)
        spreads.append(max(truth.values()) - min(truth.values()))
    assert mean(spreads) <= 8
    assert max(spreads) <= 24
