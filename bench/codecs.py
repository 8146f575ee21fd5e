"""Codecs to measure: the demo voice's, tiny random ones, and random ones of published sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from demo_voice.recipe import MODEL
from engine_adapter.folders import CODEC_FOLDER
from vocoder_service.codec import Codec, load_codec
from vocoder_service.kept import stacked, unstacked
from vocoder_service.streaming import State

# Parts of the checkpoints that only encode.
_ENCODING = re.compile(r"(^|[._])(encoder|semantic|downsample)|^fc\.|^fc1\.")

PUBLISHED = ("dac", "encodec", "mimi", "xcodec")
"""Kinds whose default configuration in transformers is that of the published model: DAC 16 kHz,
EnCodec 24 kHz, Mimi, X-Codec (HuBERT)."""


@dataclass(frozen=True)
class Subject:
    """A codec to measure.

    Attributes:
        parameters: of what decodes, codebooks included.
    """

    name: str
    codec: Codec
    parameters: int

    @property
    def frames_per_second(self) -> float:
        """Of its audio."""
        return self.codec.sample_rate / self.codec.hop_length


@contextmanager
def demo_codec(device: str) -> Iterator[Subject]:
    """The demo voice's."""
    yield _load("demo-voice", MODEL / CODEC_FOLDER, device)


@contextmanager
def tiny(kind: str, device: str) -> Iterator[Subject]:
    """A random codec with real kernels and strides, and few channels."""
    from vocoder_service import tiny as makers

    make: Callable[[Path, int], None] = getattr(makers, f"make_tiny_{kind}")
    with TemporaryDirectory(prefix="speechlm-bench-") as folder:
        make(Path(folder), 0)
        yield _load(f"{kind}, tiny", Path(folder), device)


@contextmanager
def published(kind: str, device: str) -> Iterator[Subject]:
    """A random codec as large as the published one."""
    import transformers as t

    t.utils.logging.disable_progress_bar()
    made: dict[str, tuple[Any, Any]] = {
        "dac": (t.DacModel, t.DacConfig(downsampling_ratios=[2, 4, 5, 8], sampling_rate=16000)),
        "encodec": (t.EncodecModel, t.EncodecConfig()),
        "mimi": (t.MimiModel, t.MimiConfig()),
        "xcodec": (t.XcodecModel, t.XcodecConfig()),
    }
    model, config = made[kind]
    with TemporaryDirectory(prefix="speechlm-bench-") as folder:
        model(config).eval().save_pretrained(folder)
        yield _load(f"{kind}, as published", Path(folder), device)


def _load(name: str, directory: Path, device: str) -> Subject:
    from safetensors import safe_open

    parameters = 0
    for file in directory.glob("*.safetensors"):
        with safe_open(file, "pt") as weights:
            for key in weights.keys():  # noqa: SIM118  # it is not a mapping
                if not _ENCODING.search(key):
                    parameters += weights.get_tensor(key).numel()
    return Subject(name, load_codec(directory, device), parameters)


def random_codes(codec: Codec, batch: int, frames: int) -> torch.Tensor:
    """int64 ``[batch, frames, codebooks]``, always the same."""
    generator = torch.Generator().manual_seed(frames)
    shape = (batch, frames, codec.num_codebooks)
    return torch.randint(codec.codebook_size, shape, generator=generator)


def in_mid_stream(codec: Codec, batch: int) -> State:
    """What is remembered of so many streams that have begun."""
    _, state = codec.advance(random_codes(codec, 1, codec.first_frames + 8), None, last=False)
    [one] = unstacked(state, 1)
    return stacked([one] * batch)
