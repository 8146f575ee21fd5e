"""``python -m bench.engine``: step times against stock vLLM and plain PyTorch.

Exit status: 0 when everything was measured, whatever the verdicts; 1 when a measurement
failed; 130 when interrupted. docs/benchmarks.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from bench.checkpoints import make_checkpoints
from bench.engines import end_children, prepare_environment
from bench.figures import Measurement
from bench.machine import describe, engine_threads
from bench.plan import DTYPES, THOROUGHNESS, Thoroughness, sessions
from bench.report import Run, to_json, to_text
from bench.sessions import Runner, progress
from bench.window import MeasurementError

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, prints the tables and writes the JSON; returns the exit status."""
    options = _parser().parse_args(arguments)
    thoroughness = THOROUGHNESS[options.profile]
    if options.dtype:
        thoroughness = replace(thoroughness, dtypes=tuple(dict.fromkeys(options.dtype)))
    if options.rows:
        thoroughness = replace(thoroughness, rows=tuple(sorted(set(options.rows))))
    prepare_environment()
    # The start of an engine blocks the event loop, and vLLM drops a KeyboardInterrupt then.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        run = measure_all(thoroughness)
    except MeasurementError as error:
        progress(f"failed: {error}")
        return 1
    except SystemExit:
        progress("interrupted")
        return _INTERRUPTED
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        end_children()
    if options.output is not None:
        options.output.write_text(json.dumps(to_json(run), indent=1) + "\n")
    print(to_text(run))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--profile", choices=THOROUGHNESS, default="full")
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, help="instead of the profile's")
    parser.add_argument(
        "--rows", nargs="+", type=_positive, help="rows in flight, instead of the profile's"
    )
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _interrupt(*_: object) -> None:
    raise SystemExit(_INTERRUPTED)


def measure_all(thoroughness: Thoroughness, device: str = "cpu") -> Run:
    """Measures every session.

    Args:
        device: of plain PyTorch; vLLM finds its own.

    Raises:
        MeasurementError: a figure would not show what it should.
    """
    return asyncio.run(_run(thoroughness, device))


async def _run(thoroughness: Thoroughness, device: str) -> Run:
    begun, threads = time.monotonic(), engine_threads()
    machine = describe()
    plan = list(sessions(thoroughness))
    measurements: list[Measurement] = []
    load: list[float] = []
    with tempfile.TemporaryDirectory(prefix="speechlm-bench-") as directory:
        checkpoints = make_checkpoints(Path(directory))
        runner = Runner(thoroughness, checkpoints, threads, device)
        for index, session in enumerate(plan, start=1):
            progress(f"[{index}/{len(plan)}] {session.dtype}, {session.setup}")
            async with aclosing(runner.measure(session)) as measured:
                async for m in measured:
                    measurements.append(m)
                    progress(f"    {m.variant}, {m.rows} rows: {m.step_ms:.2f} ms")
            load.append(os.getloadavg()[0])
            gc.collect()  # engines are in reference cycles
    return Run(
        thoroughness=thoroughness,
        machine=machine,
        model=checkpoints.describe(),
        settings=runner.settings,
        load=load,
        seconds=time.monotonic() - begun,
        measurements=measurements,
    )


if __name__ == "__main__":
    sys.exit(main())
