"""Decoders that remember: convolutions, a sequence model with a state, convolutions.

The convolutions are decoded in windows with context like those of any codec. The sequence model
is not: it remembers everything, or far more than a window, so it reads each frame of a stream once
for good, and what it knows then is kept until the next window.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import torch
from torch import nn

from vocoder_service.receptive_field import (
    ConvLayer,
    context_frames,
    frames_at_start,
    upsampling,
)


class Run(NamedTuple):
    """Consecutive positions of one stream that a sequence model is to read."""

    inputs: torch.Tensor
    """[positions, width]."""
    begin: int
    """Index in the stream of the first position."""
    state: torch.Tensor | None
    """What the model knows of the positions before; None at the start of the stream."""


class SequenceModel(Protocol):
    """A model whose output at a position depends on that position and those before it."""

    def advance(self, runs: Sequence[Run]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Outputs [positions, width] and the state after the last position, for each run.

        Runs may be of unequal length, and empty. Their states are left as they are.
        """


class Stages:
    """The three parts of a decoder, in float32 or finer if windows are to join exactly.

    *Latents* are the outputs of the sequence model, ``per_frame`` of them for every frame.
    """

    def __init__(
        self,
        front: nn.Module,
        front_layers: Sequence[ConvLayer],
        sequence: SequenceModel,
        back: nn.Module,
        back_layers: Sequence[ConvLayer],
    ) -> None:
        """
        Args:
            front: codes [batch, codebooks, frames] to [batch, width, per_frame * frames].
            back: latents [batch, width, n] to [batch, 1, samples].
            front_layers, back_layers: their convolutions, in order.
        """
        self._front, self._back = front, back
        self.sequence = sequence
        self.per_frame = upsampling(front_layers)
        self.hop_length = self.per_frame * upsampling(back_layers)
        self.front_left, self.front_right = context_frames(front_layers)
        self.back_left, self.back_right = context_frames(back_layers, self.per_frame)
        self.first_frames = frames_at_start([*front_layers, *back_layers])
        self._device = next(back.parameters()).device

    @property
    def left_context(self) -> int:
        """Frames in front of a window's body that the convolutions read."""
        return self.front_left + self.back_left

    @property
    def right_context(self) -> int:
        """Frames behind a window's body that the convolutions read."""
        return self.front_right + self.back_right

    @torch.inference_mode()
    def front(self, codes: torch.Tensor) -> torch.Tensor:
        """Inputs of the sequence model [batch, width, positions] of int64 ``codes``."""
        with _float32():
            hidden: torch.Tensor = self._front(codes.to(self._device))
        return hidden

    @torch.inference_mode()
    def advance(self, runs: Sequence[Run]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """See ``SequenceModel.advance``."""
        with _float32():
            return self.sequence.advance(runs)

    @torch.inference_mode()
    def back(self, latents: torch.Tensor) -> torch.Tensor:
        """Audio, float32 [batch, samples] in [-1, 1], of ``latents`` [batch, width, n]."""
        with _float32():
            wave: torch.Tensor = self._back(latents)
        return wave.flatten(1).float().clamp(-1.0, 1.0)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Whole streams at once, all of one length; shapes as above."""
        runs = [Run(row, 0, None) for row in self.front(codes).transpose(1, 2)]
        latents = torch.stack([outputs for outputs, _ in self.advance(runs)])
        return self.back(latents.transpose(1, 2))


def _float32() -> AbstractContextManager[None]:
    """TensorFloat-32, cuDNN's default, would make a window differ from the one-shot decode."""
    return torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
