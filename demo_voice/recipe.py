"""All sizes of the recipe, and where it keeps what it has made so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from engine_adapter.sampling_defaults import SamplingDefaults

WORK = Path(__file__).parent / "work"
MODEL = Path(__file__).parent / "model"

SAMPLE_RATE = 16_000
HOP = 512
"""Samples per codec frame: 31.25 frames a second."""


@dataclass(frozen=True)
class CodecRecipe:
    """The codec: a residual quantizer of spectral features and a DAC decoder.

    Attributes:
        ratios: the encoder's strides, slowest last; their product is ``HOP``. The decoder takes
            them in reverse, and the large first step keeps its receptive field short: seven
            frames each side, which a listener waits for. All are even: DAC's padding for odd
            strides changes the output's length.
        width: channels of the decoder's first layer; each step halves them.
        code_dim: dimensions of a code, the constant one included.
        fit_frames: frames that the quantizer is fitted on.
        crop: frames of one training example. The outer ``margin`` on each side are decoded, but
            not judged: their context is missing.
        batch: examples a step.
    """

    codebooks: int = 8
    codebook_size: int = 256
    code_dim: int = 32
    ratios: tuple[int, ...] = (2, 4, 4, 16)
    width: int = 256
    fit_frames: int = 60_000
    crop: int = 32
    margin: int = 3
    batch: int = 4
    steps: int = 11_000
    warmup: int = 200
    rate: float = 2e-3


@dataclass(frozen=True)
class LanguageModelRecipe:
    """The language model: a Qwen3 body over the ``demo`` family's rows.

    Attributes:
        parts: of one step's batch; without a GPU, as many processes share them as there are cores.
        positions: rows of one part, padding included.
        compiled: whether the body is compiled, which makes it a third faster and takes a minute.
        dropout: share of the examples that are shown without their prompt, which teaches the
            unconditional half of guidance.
        first_frames, curriculum: the longest utterance at the start, and the share of the steps
            over which the limit rises to ``max_frames``: short ones teach the alignment sooner.
        decay: share of the steps, at the end, over which the rate falls to zero.
        stream_weights: of the loss of each stream; the first ones carry the words.
        guide, guide_weight, guide_width: of the guided attention: the share of the steps, at the
            start, that it is used in; its weight in the loss; its width in letters.
        validation: utterances, the first ones, that are kept from training.
    """

    hidden: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    feed_forward: int = 768
    parts: int = 2
    positions: int = 1536
    compiled: bool = True
    steps: int = 19_000
    warmup: int = 200
    decay: float = 0.2
    rate: float = 2e-3
    weight_decay: float = 0.05
    dropout: float = 0.1
    first_frames: int = 48
    max_frames: int = 208
    curriculum: float = 0.15
    stream_weights: tuple[float, ...] = (2.0, 1.5, 1.0, 1.0, 0.8, 0.8, 0.7, 0.7)
    guide: float = 0.5
    guide_weight: float = 0.2
    guide_width: float = 3.0
    validation: int = 128


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result, beside the code and the packages.

    Attributes:
        shard: texts synthesised, coded and stored together.
        sampling, cfg_scale: the shipped model's defaults; REPORT.md shows why.
    """

    seed: int = 1
    texts: int = 40_000
    shard: int = 1000
    codec: CodecRecipe = field(default_factory=CodecRecipe)
    language_model: LanguageModelRecipe = field(default_factory=LanguageModelRecipe)
    utterance_characters: int = 100  # what max_frames hold
    cfg_scale: float = 2.0
    sampling: dict[Literal["text", "audio"], SamplingDefaults] = field(
        default_factory=lambda: {"audio": SamplingDefaults(0.25, 30)}
    )


FULL = Recipe()
