"""What is measured, in which order: variants, thoroughness, sessions. Pure data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bench.setting import Profile

PROMPT_ROWS = 32
SKIPPED_STEPS = 16  # of every request, before its steps count
GUIDANCE_SCALE = 2.0
DTYPES = ("float32", "bfloat16")


class Variant(StrEnum):
    """What generates."""

    STOCK = "stock"
    STOCK_DEFAULT = "stock-default-executor"
    PLAIN = "plain"
    GUIDED = "guided"
    CLIENT_GUIDED = "client-guided"
    SEQUENTIAL = "sequential"
    SEQUENTIAL_GUIDED = "sequential-guided"
    BATCHED = "transformers-batched"

    def requests(self, rows: int) -> int:
        """Requests that fill ``rows`` rows of a step."""
        paired = {Variant.GUIDED, Variant.CLIENT_GUIDED, Variant.SEQUENTIAL_GUIDED}
        return rows // 2 if self in paired else rows


class Setup(StrEnum):
    """What a session starts; at most one engine process at a time."""

    SEQUENTIAL = "sequential PyTorch"
    STOCK = "stock vLLM"
    SPEECH = "speechlm-serve"
    STOCK_DEFAULT = "stock vLLM, default executor"
    CLIENT_GUIDANCE = "stock vLLM, client-side guidance"


@dataclass(frozen=True)
class Workload:
    """One variant with so many rows in flight."""

    variant: Variant
    rows: int


@dataclass(frozen=True)
class Thoroughness:
    """How thorough a run is.

    Attributes:
        rows: rows in flight.
        cycles: times that every engine is started anew; ratios are taken within a cycle.
        rounds: measurements of a workload per cycle.
        steps: decode steps a measurement counts, if all its requests start in one step.
        single_rounds: measurements of a workload in the sessions that come once.
        default_executor: whether stock vLLM is also measured as it starts by default.
    """

    rows: tuple[int, ...]
    dtypes: tuple[str, ...]
    cycles: int
    rounds: int
    steps: int
    single_rounds: int = 3
    default_executor: bool = True


THOROUGHNESS: dict[Profile, Thoroughness] = {
    "quick": Thoroughness((1, 32, 128), ("float32",), 1, 3, 40, default_executor=False),
    "full": Thoroughness((1, 8, 32, 128, 256), DTYPES, 3, 2, 64),
}


@dataclass(frozen=True)
class Session:
    """Measurements with one setup, from its start to its end.

    Attributes:
        cycle: None for a session that comes once per dtype.
        rounds: times that all workloads are measured, in turn.
    """

    setup: Setup
    dtype: str
    cycle: int | None
    rounds: int
    workloads: tuple[Workload, ...]


def sessions(thoroughness: Thoroughness) -> Iterator[Session]:
    """The sessions of a run in order.

    Every second cycle runs backwards, so that a slow drift of the machine does not favour
    one side.
    """
    guided_rows = tuple(rows for rows in thoroughness.rows if rows % 2 == 0)
    sequential = (
        Workload(Variant.SEQUENTIAL, 1),
        Workload(Variant.SEQUENTIAL_GUIDED, 2),
        *_workloads(tuple(rows for rows in thoroughness.rows if rows > 1), Variant.BATCHED),
    )
    for dtype in thoroughness.dtypes:
        for cycle in range(thoroughness.cycles):
            parts = [
                (Setup.SEQUENTIAL, sequential),
                (Setup.STOCK, _workloads(thoroughness.rows, Variant.STOCK)),
                (Setup.SPEECH, _workloads(thoroughness.rows, Variant.PLAIN, Variant.GUIDED)),
            ]
            for setup, workloads in parts[:: -1 if cycle % 2 else 1]:
                yield Session(setup, dtype, cycle, thoroughness.rounds, workloads)
        singles = [(Setup.CLIENT_GUIDANCE, _workloads(guided_rows, Variant.CLIENT_GUIDED))]
        if thoroughness.default_executor:
            workloads = _workloads(thoroughness.rows, Variant.STOCK_DEFAULT)
            singles.append((Setup.STOCK_DEFAULT, workloads))
        for setup, workloads in singles:
            if workloads:
                yield Session(setup, dtype, None, thoroughness.single_rounds, workloads)


def _workloads(rows: tuple[int, ...], *variants: Variant) -> tuple[Workload, ...]:
    """Variants next to each other at every number of rows they can fill."""
    return tuple(
        Workload(variant, count)
        for count in rows
        for variant in variants
        if count == 1 or count % 2 == 0 or variant is not Variant.GUIDED
        if variant.requests(count) > 0
    )
