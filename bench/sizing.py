"""What a GPU could hold and do at best, for the official families. Arithmetic, not measurement.

``python -m bench.sizing`` prints the tables of docs/scaling.md.

A step reads every weight once, and the KV cache of every row; it multiplies every weight with
every row. Memory bandwidth and arithmetic each take a time, and the larger is the least that a
step can take: the roofline. Launches, sampling, the host and the vocoder come on top.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine_adapter.conversion.backbones import BACKBONES
from engine_adapter.families import FAMILIES

GIB = 2**30
_BYTES = 2  # of bfloat16
_RESERVED_GIB = 6.0  # activations, CUDA graphs, two CUDA contexts, the vocoder
_UTILIZATION = 0.95  # of the memory
FRAMES_PER_SECOND = 50  # of all three families


@dataclass(frozen=True)
class Device:
    """A GPU, from its data sheet.

    Attributes:
        memory: bytes.
        bandwidth: bytes per second.
        flops: floating point operations per second, bfloat16, dense.
    """

    name: str
    memory: float
    bandwidth: float
    flops: float


DEVICES = (
    Device("H100 SXM", 80e9, 3.35e12, 989e12),
    Device("H200 SXM", 141e9, 4.8e12, 989e12),
)


@dataclass(frozen=True)
class Model:
    """Sizes of a family's model.

    Attributes:
        layer_parameters: of all layers together.
        vocabulary_parameters: of embeddings and head; looked up, or read in text phases only.
        audio_head_parameters: rows of the head for codes of all streams, read in audio steps.
        kv_bytes: of one row of a context.
    """

    family: str
    layer_parameters: int
    vocabulary_parameters: int
    audio_head_parameters: int
    kv_bytes: int

    @property
    def weight_bytes(self) -> int:
        """In memory."""
        return _BYTES * (self.layer_parameters + self.vocabulary_parameters)

    @property
    def step_parameters(self) -> int:
        """That a step reads and multiplies while audio is written."""
        return self.layer_parameters + self.audio_head_parameters

    @property
    def kv_bytes_per_second(self) -> int:
        """Of KV cache for a second of audio."""
        return self.kv_bytes * FRAMES_PER_SECOND


def model(family: str) -> Model:
    """The published model of a family.

    Raises:
        KeyError: there is none.
    """
    config, spec = BACKBONES[family].config, FAMILIES[family]
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    head = config["head_dim"]
    query, key = head * config["num_attention_heads"], head * config["num_key_value_heads"]
    attention = hidden * (2 * query + 2 * key)
    feed_forward = 3 * hidden * config["intermediate_size"]
    codes = sum(stream.end - stream.first_id for stream in spec.streams)
    return Model(
        family=family,
        layer_parameters=layers * (attention + feed_forward),
        vocabulary_parameters=2 * hidden * spec.vocab_size,
        audio_head_parameters=hidden * codes,
        kv_bytes=2 * _BYTES * layers * key,
    )


def step_seconds(model: Model, device: Device, rows: int, context: int) -> float:
    """The least time of a step in which ``rows`` rows of ``context`` rows each write audio."""
    read = _BYTES * model.step_parameters + rows * context * model.kv_bytes
    arithmetic = 2 * rows * model.step_parameters
    return max(read / device.bandwidth, arithmetic / device.flops)


def rows_in_memory(model: Model, device: Device, context: int) -> int:
    """Rows whose contexts of ``context`` rows the KV cache holds together."""
    left = _UTILIZATION * device.memory - model.weight_bytes - _RESERVED_GIB * GIB
    return max(0, int(left // (context * model.kv_bytes)))


def rows_in_real_time(model: Model, device: Device, context: int) -> int:
    """Rows that fit and that write audio no slower than it is heard, at best."""
    low, high = 0, rows_in_memory(model, device, context)
    while low < high:
        middle = (low + high + 1) // 2
        if step_seconds(model, device, middle, context) <= 1 / FRAMES_PER_SECOND:
            low = middle
        else:
            high = middle - 1
    return low


def tables(context: int = 1000) -> str:
    """Markdown.

    Args:
        context: rows of a request, prompt included; its half is the mean while it is written.
    """
    lines = [
        "| family | weights | read per step | KV per row | KV per second of audio |",
        "|---|---|---|---|---|",
    ]
    models = [model(family) for family in BACKBONES]
    lines += [
        f"| {m.family} | {m.weight_bytes / GIB:.1f} GiB | "
        f"{_BYTES * m.step_parameters / GIB:.1f} GiB | {m.kv_bytes / 1024:.0f} KiB | "
        f"{m.kv_bytes_per_second / 2**20:.1f} MiB |"
        for m in models
    ]
    lines += [
        "",
        "| family | device | rows that fit | of them in real time | step of 1 row | of 64 rows "
        "| audio seconds per second, 64 rows |",
        "|---|---|---|---|---|---|---|",
    ]
    for m in models:
        for device in DEVICES:
            one, many = (step_seconds(m, device, rows, context // 2) for rows in (1, 64))
            fit = rows_in_memory(m, device, context)
            live = min(fit, rows_in_real_time(m, device, context // 2))
            lines.append(
                f"| {m.family} | {device.name} | {fit} | {live} | {1e3 * one:.1f} ms | "
                f"{1e3 * many:.1f} ms | {64 / many / FRAMES_PER_SECOND:.0f} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(tables(), end="")
