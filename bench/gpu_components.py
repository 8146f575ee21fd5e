"""``python -m bench.gpu_components``: what surrounds the forward pass, against the device's limits.

Heads, guidance, drawing ids, summed embeddings and vocoder windows at the sizes of the published
models, on a GPU where there is one. Every time stands beside the roofline: the least time for its
operations and the bytes it cannot do without. Needs no engine and no weights.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from bench.codecs import Subject, demo_codec, in_mid_stream, published, random_codes
from bench.devices import Peak, milliseconds, peak_of
from bench.document import markdown
from bench.findings import Row
from bench.host import random_heads
from engine_adapter.conversion.backbones import BACKBONES
from engine_adapter.families import FAMILIES
from engine_adapter.heads import CodecHeads
from engine_adapter.sampling import SamplingBatch, sample
from engine_adapter.spec import StreamSpec

_FLOAT = 4  # bytes of a logit
_WINDOWS = (8, 16, 64)


@dataclass(frozen=True)
class Component:
    """Some work, and the least that it takes.

    Attributes:
        flops, transferred: operations, and bytes read and written.
    """

    name: str
    work: Callable[[], object]
    flops: float
    transferred: float


def components(
    spec: StreamSpec, width: int, rows: int, dtype: torch.dtype, device: str
) -> Iterator[Component]:
    """The parts of a step that come after the forward pass, every row in audio.

    Args:
        width: of the hidden states.
    """
    heads = random_heads(spec, dtype, width, device)
    hidden = torch.randn(rows, width, device=device).to(dtype)
    size = hidden.element_size()
    candidates = sum(group.ids.numel() for group in heads.groups)
    logits = float(rows * candidates * _FLOAT)
    read = size * width * (candidates + rows)
    products = 2.0 * rows * candidates * width
    with torch.inference_mode():
        values = heads(hidden)
    yield Component("heads", lambda: heads(hidden), products, read + logits)
    yield Component("guidance", lambda: _mix(values), 3 * logits / _FLOAT, 3 * logits)
    yield Component("drawing ids", _drawing(spec, heads, values, rows), 0.0, logits)
    table = torch.randn(spec.vocab_size, width, device=device).to(dtype)
    ids = torch.randint(spec.vocab_size, (rows, spec.num_streams), device=device)
    moved = size * width * rows * (spec.num_streams + 1)
    yield Component("summed embeddings", lambda: table[ids].sum(1), 0.0, float(moved))


def _mix(values: Sequence[Tensor]) -> list[Tensor]:
    """Guidance of as many rows as there are, each with another of the same batch."""
    scale = values[0].new_full((len(values[0]), 1, 1), 2.0)
    return [scale * v + (1 - scale) * v.roll(1, 0) for v in values]


def _drawing(
    spec: StreamSpec, heads: CodecHeads, values: Sequence[Tensor], rows: int
) -> Callable[[], list[Tensor]]:
    defaults = spec.sampling["audio"]
    batch = SamplingBatch(
        np.full(rows, defaults.temperature, np.float32),
        np.full(rows, defaults.top_k, np.int64),
        np.full(rows, defaults.top_p, np.float32),
        np.arange(rows, dtype=np.int64),
        np.arange(rows, dtype=np.int64),
    )
    padded = [value.clone() for value in values]
    for index, value in enumerate(padded):
        heads.bar_padding(index, value)
    return lambda: [
        sample(value, heads.ids(index), batch, group.first)
        for index, (group, value) in enumerate(zip(heads.groups, padded, strict=True))
    ]


def windows(subject: Subject, batch: int) -> Iterator[Component]:
    """Windows of several sizes, so many together, in mid-stream.

    The least bytes are the weights, read once; operations are not counted.
    """
    for size in _WINDOWS:
        codes = random_codes(subject.codec, batch, size)
        state = in_mid_stream(subject.codec, batch)
        yield Component(
            f"vocoder, {size} frames",
            partial(subject.codec.advance, codes, state, last=False),
            0.0,
            float(_FLOAT * subject.parameters),
        )


def measured(component: Component, device: str, peak: Peak) -> Row:
    """The component beside its roofline."""
    with torch.inference_mode():
        took = milliseconds(component.work, device, rounds=5)
    least = 1000 * peak.seconds(component.flops, component.transferred)
    return {
        "part": component.name,
        "ms": took,
        "roofline ms": least,
        "times roofline": took / least,
    }


def step_rows(
    device: str, counts: Sequence[int], families: Sequence[str], width: int | None = None
) -> list[Row]:
    """The parts of a step in bfloat16 on a GPU, in float32 on a CPU.

    Args:
        width: of the hidden states; None: the published model's.
    """
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    peak = peak_of(device, dtype)
    rows: list[Row] = []
    for family in families:
        wide = width or int(BACKBONES[family].config["hidden_size"])
        for count in counts:
            key: Row = {"family": family, "width": wide, "rows": count}
            parts = components(FAMILIES[family], wide, count, dtype, device)
            rows += [key | measured(part, device, peak) for part in parts]
    return rows


def vocoder_rows(device: str, batches: Sequence[int], full_size: bool) -> list[Row]:
    """Windows of a codec as large as the published one, or of the demo voice's."""
    peak = peak_of(device, torch.float32)
    with published("xcodec", device) if full_size else demo_codec(device) as subject:
        rows: list[Row] = []
        for batch in batches:
            key: Row = {"codec": subject.name, "streams": batch}
            rows += [key | measured(part, device, peak) for part in windows(subject, batch)]
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints both tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu_components", description=__doc__)
    found = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", choices=("cpu", "cuda"), default=found)
    parser.add_argument("--rows", nargs="+", type=int, default=[64, 256, 512])
    parser.add_argument("--streams", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--family", nargs="+", choices=list(BACKBONES), default=list(BACKBONES))
    parser.add_argument("--width", type=int, help="default: the published model's")
    parser.add_argument("--demo-codec", action="store_true", help="instead of a large X-Codec")
    options = parser.parse_args(arguments)
    print(markdown(step_rows(options.device, options.rows, options.family, options.width)))
    print()
    print(markdown(vocoder_rows(options.device, options.streams, not options.demo_codec)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
