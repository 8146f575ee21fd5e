"""What surrounds the forward pass, against what the device can do."""

from __future__ import annotations

import torch

from bench.document import About
from bench.findings import Findings, Table
from bench.gpu_components import step_rows, vocoder_rows
from bench.machine import engine_threads
from bench.setting import Setting
from engine_adapter.conversion.backbones import BACKBONES

ABOUT = About(
    "Around the forward pass",
    """
`bench.gpu_components`: the heads' product, guidance, drawing ids and the sum of stream embeddings
of the official families at their published widths, and vocoder windows. On a GPU in bfloat16 with
X-Codec's published size and the data sheet's peaks, `full` on a CPU the same in float32 with
measured peaks; `quick` on a CPU is small. *roofline ms* is the least time for the operations and
for the bytes that must be read and written; for drawing ids one pass over the logits, for vocoder
windows its weights read once. The peak bandwidth is of memory: what fits into a cache can beat it.
""",
)


def measure(setting: Setting) -> Findings:
    """Published sizes on a GPU and in a full run, small ones else."""
    small = setting.device == "cpu" and setting.profile == "quick"
    before = torch.get_num_threads()
    torch.set_num_threads(engine_threads())
    try:
        counts, streams = ((32,), (1, 8)) if small else ((64, 256, 512), (1, 8, 64))
        families = list(BACKBONES)[:1] if small else list(BACKBONES)
        width = 256 if small else None
        return Findings(
            [
                Table("Parts of a step", step_rows(setting.device, counts, families, width)),
                Table("Vocoder windows", vocoder_rows(setting.device, streams, not small)),
            ]
        )
    finally:
        torch.set_num_threads(before)
