"""``python -m bench.one_part``: measures one part and writes its result.

A process for each: engines, devices and environment variables of one part do not reach the next.
Exit status: 0 when it was measured, whatever the verdicts; 1 when it failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

from bench.engines import end_children, prepare_environment
from bench.machine import describe
from bench.registry import PARTS
from bench.results import Result
from bench.setting import PROFILES, Setting


def main() -> int:
    """Measures the part that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m bench.one_part", description=__doc__)
    parser.add_argument("part", choices=[part.name for part in PARTS])
    parser.add_argument("--profile", choices=PROFILES, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), required=True)
    parser.add_argument("--url", default="")
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    # The start of an engine blocks the event loop, and vLLM drops a KeyboardInterrupt then.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    prepare_environment()
    part = next(part for part in PARTS if part.name == options.part)
    setting = Setting(options.profile, options.device, options.url)
    machine, before = describe(), os.getloadavg()[0]
    began, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    findings, error = None, None
    try:
        findings = part.load().measure(setting)
    except Exception as failure:  # a part may fail in any way; the others are still of use
        traceback.print_exc()
        error = f"{type(failure).__name__}: {failure}".splitlines()[0]
    finally:
        end_children()
    Result(
        part=part.name,
        profile=setting.profile,
        device=setting.device,
        began=began,
        seconds=time.monotonic() - clock,
        machine=machine,
        load=(before, os.getloadavg()[0]),
        findings=findings,
        error=error,
    ).write(options.results)
    return 0 if error is None else 1


def _interrupt(*_: object) -> None:
    raise SystemExit(130)


if __name__ == "__main__":
    sys.exit(main())
