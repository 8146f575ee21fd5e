"""The order of a run."""

from itertools import groupby

from bench.plan import THOROUGHNESS, Session, Setup, Thoroughness, Variant, Workload, sessions

THREE_CYCLES = Thoroughness((1, 4), ("float32", "bfloat16"), cycles=3, rounds=2, steps=8)


def of(setup: Setup, thoroughness: Thoroughness = THREE_CYCLES) -> list[Session]:
    return [s for s in sessions(thoroughness) if s.setup is setup]


def test_every_cycle_starts_each_side_once() -> None:
    for setup in (Setup.SEQUENTIAL, Setup.STOCK, Setup.SPEECH):
        cycles = [(s.dtype, s.cycle) for s in of(setup)]
        assert cycles == [(d, c) for d in THREE_CYCLES.dtypes for c in range(3)]


def test_every_second_cycle_runs_backwards() -> None:
    by_cycle = [
        [s.setup for s in group]
        for cycle, group in groupby(sessions(THREE_CYCLES), key=lambda s: (s.dtype, s.cycle))
        if cycle[1] is not None
    ]
    assert by_cycle[1] == by_cycle[0][::-1]
    assert by_cycle[2] == by_cycle[0]


def test_one_row_cannot_be_guided() -> None:
    speech = of(Setup.SPEECH)[0]
    assert speech.workloads == (
        Workload(Variant.PLAIN, 1),
        Workload(Variant.PLAIN, 4),
        Workload(Variant.GUIDED, 4),
    )
    assert of(Setup.CLIENT_GUIDANCE)[0].workloads == (Workload(Variant.CLIENT_GUIDED, 4),)


def test_an_odd_number_of_rows_has_no_guided_variant() -> None:
    odd = Thoroughness((1, 3), ("float32",), cycles=1, rounds=1, steps=8)
    assert [w.variant for w in of(Setup.SPEECH, odd)[0].workloads] == [Variant.PLAIN] * 2
    assert of(Setup.CLIENT_GUIDANCE, odd) == []


def test_a_guided_request_takes_two_rows() -> None:
    assert Variant.GUIDED.requests(128) == 64
    assert Variant.PLAIN.requests(128) == 128


def test_every_profile_measures_each_figure_three_times() -> None:
    for thoroughness in THOROUGHNESS.values():
        assert thoroughness.cycles * thoroughness.rounds >= 3
        assert thoroughness.single_rounds >= 3
