"""``python -m bench``: measures everything and writes docs/benchmarks.md.

Results are JSON in bench/results/, one file a part; a part that was measured with the same profile
on the same device and commit is not measured again, so that a run can be ended and gone on with.
Exit status: 0 when everything was measured, whatever the verdicts; 1 when a part failed.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.document import About, document
from bench.machine import commit
from bench.registry import PARTS, TARGETS, Part, chosen
from bench.results import RESULTS, read, read_all
from bench.service import serving
from bench.setting import PROFILES

_TERMINATED = 143
DOCS = Path(__file__).parents[1] / "docs"
INTRODUCTION = Path(__file__).with_name("introduction.md")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts that are wanted, and writes the report of all that there are results of."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)  # as for Ctrl-C: a service that was started is ended
    if not options.report_only:
        device = options.device or _device()
        parts = chosen(options.only, options.target)
        if not options.again:
            code = commit()
            parts = [part for part in parts if not _is_there(part, options, device, code)]
        measured = _measure(parts, options, device)
    else:
        measured = True
    write_report(options.results, options.docs)
    return 0 if measured else 1


def _parser() -> argparse.ArgumentParser:
    names = [part.name for part in PARTS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, default="quick", help="%(default)s")
    parser.add_argument("--target", choices=TARGETS, help="default: both")
    parser.add_argument("--only", nargs="+", choices=names, metavar="PART", help=", ".join(names))
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: what vLLM finds")
    parser.add_argument("--url", help="of a running service; default: one is started")
    parser.add_argument("--again", action="store_true", help="also what has a result")
    parser.add_argument("--report-only", action="store_true", help="measure nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="default: %(default)s")
    parser.add_argument("--docs", type=Path, default=DOCS, help="default: %(default)s")
    return parser


def _end(*_: object) -> None:
    raise SystemExit(_TERMINATED)


def _device() -> str:
    from vllm.platforms import current_platform

    return "cuda" if current_platform.is_cuda_alike() else "cpu"


def _is_there(part: Part, options: argparse.Namespace, device: str, code: str) -> bool:
    known = read(options.results, part.name)
    return known is not None and known.answers(options.profile, device, code)


def _measure(parts: Sequence[Part], options: argparse.Namespace, device: str) -> bool:
    """Whether every part was measured."""
    failed = []
    with ExitStack() as stack:
        url = options.url
        for number, part in enumerate(parts, start=1):
            if part.target == "http" and url is None:
                print("starting a service", file=sys.stderr, flush=True)
                url = stack.enter_context(serving())
            if part.target == "engine":
                stack.close()  # the service that was started: nothing else may use the machine
            print(f"[{number}/{len(parts)}] {part.name}", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "bench.one_part", part.name]
            command += ["--profile", options.profile, "--device", device]
            command += ["--url", url or "", "--results", str(options.results)]
            if subprocess.run(command, check=False).returncode:
                failed.append(part.name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return not failed


def write_report(results: Path, docs: Path) -> None:
    """Writes the document and its charts; removes the charts of an earlier one."""
    known = read_all(results, [part.name for part in PARTS])
    about: dict[str, About] = {part.name: part.load().ABOUT for part in PARTS}
    files = document(INTRODUCTION.read_text(), known, about)
    for old in (docs / "benchmarks").glob("*.svg"):
        old.unlink()
    for name, content in files.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


if __name__ == "__main__":
    sys.exit(main())
