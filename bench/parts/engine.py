"""The engine against stock vLLM, plain PyTorch and guidance by the client: steps and frames."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from bench.arithmetic import StepModel
from bench.devices import Peak, peak_of
from bench.document import About
from bench.engine import measure_all
from bench.figures import Figure, figures
from bench.findings import Chart, Findings, Row, Table
from bench.machine import engine_threads
from bench.plan import PROMPT_ROWS, SKIPPED_STEPS, THOROUGHNESS, Variant
from bench.report import Run, to_json
from bench.setting import Setting
from bench.targets import judge
from engine_adapter.checkpoint import CONFIG_FILE
from engine_adapter.families import FAMILIES

ABOUT = About(
    "The engine and its baselines",
    """
A random model of the `demo` family: 5.9 M parameters, 8 streams, 2,320 ids. Its end ids have zero
rows in the head, so that no request ends before its frame limit and each step does the work of a
trained model's; a request that ends early fails the run.

| variant | what it is |
|---|---|
| `stock` | stock vLLM's text generation on the same backbone, the floor: the same `config.json` with the backbone's own architecture and the backbone's tensors alone |
| `plain` | this engine, one row per request |
| `guided` | this engine with `cfg_scale` 2, half as many requests, so the same number of rows |
| `sequential`, `sequential-guided` | a plain PyTorch loop, one request at a time with a KV cache: transformers' body, heads sliced to what can be sampled; guidance is a batch of two contexts. With the engine's threads and with all cores; the faster counts |
| `transformers-batched` | the same loop with a static batch, as transformers generates: all requests begin and end together and are equally long, which is the best case for it: nothing is padded, nobody waits |
| `client-guided` | guidance as a client of stock vLLM has to do it: per frame two independent one-token requests, whose top log-probabilities it mixes. The prefix cache is on, with the smallest block there is (32), which suits this client best. **A lower bound of its cost: it obtains one stream of the eight** |
| `stock-default-executor` | `stock` as vLLM starts it on its own (worker in a process of its own, threads chosen by vLLM); informative, not in `quick` |

`stock`, `plain` and `guided` run with the same settings, which the run checks as vLLM resolved
them. All sample with the family's defaults: temperature 0.8, top-k 30, top-p 1. Stock vLLM gets no
seeds, which is its faster path; every request of ours is seeded.

*ms per step*: all requests start at once, with unique prompts of 32 ids. The window opens when the
last of them has 16 rows and closes when the first has its last frame, so start-up, prefill and the
tail are outside and every row is in flight throughout. The step time is the time between a
request's first and last message in the window, divided by its rows in it; the median request
counts. It is seen from the client, so it includes the front end. For the sequential, batched and
client-side variants a step is a frame. *engine CPU ms*, *client CPU ms*: CPU time of the engine
core's and of the client's process per step; on a busy machine the better figures. *frames/s*: of
all requests together (tokens for `stock`). *rows/message*: above 1 the front end does not keep up.

A *cycle* starts every engine anew, one at a time; every second one in reverse. A ratio is taken
within a cycle, between the medians of its rounds; the table gives the median over cycles, and the
lowest and highest.

Where a plain step at 128 rows goes, by `py-spy record` on the engine core on 30 November 2026, before
drawing ids became faster: forward pass 69 %,
of which the summed stream embeddings 1 %; codec heads 5 %; drawing ids 8.5 %; phases, masks and
history 2 %; scheduling 9 %, nearly all of it vLLM's own. What remains against stock text is
inherent: eight draws a row instead of one.
""",  # noqa: E501
)

_ARITHMETIC = """
A step multiplies every weight of the layers with every row and every row of the codec heads with
every row, 2 operations each, and each query with its context, twice. It cannot do without reading
every weight once and the keys and values of every context. *MFU* is operations over step time and
peak; *bandwidth %* the same of bytes. The model has {layers:,} weights in its layers and {heads:,}
in the codec heads; contexts are {context:.0f} rows on average. Peak of this machine, {source}:
{flops:.1f} GFLOP/s, {bandwidth:.1f} GB/s. *roofline ms*: the larger of the two least times.
"""


def measure(setting: Setting) -> Findings:
    """All variants, the device's peaks, and what the one says of the other."""
    run = measure_all(THOROUGHNESS[setting.profile], setting.device)
    config = _config()
    peaks = {}
    before = torch.get_num_threads()
    torch.set_num_threads(engine_threads())
    for dtype in run.thoroughness.dtypes:
        peaks[dtype] = peak_of(setting.device, getattr(torch, dtype))
    torch.set_num_threads(before)
    return findings(run, config, peaks)


def _config() -> dict[str, object]:
    """The backbone's; written by whatever makes the model."""
    from bench.checkpoints import make_checkpoints

    with tempfile.TemporaryDirectory(prefix="speechlm-bench-") as folder:
        made = make_checkpoints(Path(folder))
        config: dict[str, object] = json.loads((made.speech / CONFIG_FILE).read_text())
    return config


def findings(run: Run, config: dict[str, object], peaks: dict[str, Peak]) -> Findings:
    """The tables, the verdicts, and how far the steps are from what the device can do."""
    summary = figures(run.measurements)
    judged = judge(run.measurements)
    ratios: list[Row] = [
        {
            "ratio": j.name,
            "dtype": j.ratio.dtype,
            "rows": j.ratio.rows,
            "median": j.ratio.spread.median,
            "lowest": j.ratio.spread.low,
            "highest": j.ratio.spread.high,
            "target": j.bound,
        }
        for j in judged
    ]
    return Findings(
        [
            Table(
                "Step times",
                [_row(figure) for figure in summary],
                charts=[
                    Chart("Frames per second", "rows", "frames/s", ("variant", "dtype"), True),
                    Chart("Milliseconds per step", "rows", "ms per step", ("variant", "dtype")),
                ],
            ),
            Table("Ratios", ratios),
            *(
                _use(summary, dtype, config, peak, run.thoroughness.steps)
                for dtype, peak in peaks.items()
            ),
        ],
        [j.verdict for j in judged if j.verdict is not None],
        to_json(run) | {"peaks": {dtype: asdict(peak) for dtype, peak in peaks.items()}},
    )


def _row(figure: Figure) -> Row:
    return {
        "variant": figure.variant.value,
        "dtype": figure.dtype,
        "rows": figure.rows,
        "ms per step": figure.step_ms.median,
        "lowest": figure.step_ms.low,
        "highest": figure.step_ms.high,
        "engine CPU ms": figure.engine_cpu_ms.median,
        "client CPU ms": figure.client_cpu_ms.median,
        "frames/s": figure.frames_per_s.median,
        "rows/message": figure.rows_per_message,
    }


def _use(
    summary: Sequence[Figure], dtype: str, config: dict[str, object], peak: Peak, steps: int
) -> Table:
    """MFU and bandwidth of the steps in which all streams are sampled."""
    spec = FAMILIES["demo"]
    candidates = sum(len(spec.candidates(stream)) for stream in range(spec.num_streams))
    model = StepModel.of(config, candidates, torch.finfo(getattr(torch, dtype)).bits // 8)
    context = PROMPT_ROWS + SKIPPED_STEPS + steps / 2
    sampling = (Variant.PLAIN, Variant.GUIDED, Variant.SEQUENTIAL, Variant.BATCHED)
    rows: list[Row] = []
    for figure in summary:
        if figure.dtype != dtype or figure.variant not in sampling:
            continue
        seconds = figure.step_ms.median / 1000
        flops = model.flops(figure.rows, figure.rows, context)
        moved = model.transferred(figure.rows, context)
        rows.append(
            {
                "variant": figure.variant.value,
                "rows": figure.rows,
                "MFLOP per step": flops / 1e6,
                "MB per step": moved / 1e6,
                "ms per step": figure.step_ms.median,
                "roofline ms": 1000 * peak.seconds(flops, moved),
                "MFU %": 100 * flops / seconds / peak.flops,
                "bandwidth %": 100 * moved / seconds / peak.bandwidth,
            }
        )
    note = _ARITHMETIC.format(
        layers=model.layer_weights,
        heads=model.head_weights,
        context=context,
        source=peak.source,
        flops=peak.flops / 1e9,
        bandwidth=peak.bandwidth / 1e9,
    )
    return Table(f"Use of the device, {dtype}", rows, note)
