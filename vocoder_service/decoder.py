"""A codec's decoder, and what the decoders of several codecs share."""

from collections.abc import Sequence
from functools import partial

import torch
from torch.nn import functional

from vocoder_service.checkpoint import Weights
from vocoder_service.frames import check_frames
from vocoder_service.receptive_field import (
    ConvLayer,
    frames_at_start,
    output_length,
    right_context,
    upsampling,
)
from vocoder_service.streaming import Chain, Layer, Pointwise, State


class Codec:
    """Codes in, waveform out; whole streams, or streams piece by piece. See ``CodecShape``.

    Attributes:
        sample_rate: samples per second (Hz) of the decoded audio, one channel.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        device: str,
        sample_rate: int,
        num_codebooks: int,
        codebook_size: int,
    ) -> None:
        """
        Args:
            layers: from codes, int64 [batch, frames, num_codebooks], to audio [batch, samples, 1].
        """
        self._chain = Chain(layers)
        self._convolutions = self._chain.convolutions
        self._device = device
        self.sample_rate = sample_rate
        self.num_codebooks = num_codebooks
        self.codebook_size = codebook_size
        self.hop_length = upsampling(self._convolutions)
        self.right_context = right_context(self._convolutions)
        self.first_frames = frames_at_start(self._convolutions)

    def num_samples(self, frames: int) -> int:
        return output_length(self._convolutions, frames)

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """Decode whole streams of one length.

        Args:
            codes: int64 [batch, num_codebooks, T >= 1] on any device.

        Returns:
            Float32 [batch, num_samples(T)] in [-1, 1], on the codec's device, no gradient.

        Raises:
            ValueError: wrong shape or type, or a code out of range.
        """
        rows = codes.transpose(1, 2)
        flat = rows.flatten(0, 1).cpu().numpy()
        check_frames(flat, self.num_codebooks, self.codebook_size)
        audio, _ = self.advance(rows, None, last=True)
        return audio

    @torch.inference_mode()
    def advance(
        self, codes: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        """Decode the next frames of several streams.

        Args:
            codes: int64 [batch, frames, num_codebooks] on any device, all in range. The first of a
                stream must be ``first_frames`` at least, or all that it has.
            before: what is remembered of the streams' frames before; None: there were none.
            last: whether the streams end with these frames, of which there may then be none.

        Returns:
            The samples that are now determined, float32 [batch, samples] in [-1, 1], and what to
            remember of the streams (see ``unstacked``). ``before`` is left as it is.
        """
        audio, after = self._chain.advance(codes.to(self._device), before, last)
        # Not every decoder has a tanh at its end.
        return audio.flatten(1).float().clamp(-1.0, 1.0), after


class Codebooks:
    """A residual quantizer: the codes of a frame stand for the sum of their vectors."""

    convolutions: Sequence[ConvLayer] = ()

    def __init__(self, tables: Sequence[torch.Tensor]) -> None:
        """``tables`` are of [codebook_size, width]."""
        self._tables = tables

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        """From int64 [batch, n, codebooks] to [batch, n, width]."""
        columns = signal.unbind(dim=2)
        vectors = functional.embedding(columns[0], self._tables[0])
        for column, table in zip(columns[1:], self._tables[1:], strict=True):
            vectors += functional.embedding(column, table)
        return vectors, ()


def linear(weights: Weights, name: str, inputs: int, outputs: int) -> Pointwise:
    """A linear layer with a bias, as of torch.nn.Linear."""
    weight, bias = weights(f"{name}.weight", outputs, inputs), weights(f"{name}.bias", outputs)
    return Pointwise(partial(functional.linear, weight=weight, bias=bias))


def codebooks_used(available: int, wanted: int | None) -> int:
    """How many codebooks to serve.

    Raises:
        ValueError: ``wanted`` is not among 1 .. ``available``.
    """
    if wanted is not None and not 1 <= wanted <= available:
        raise ValueError(f"the codec has 1 to {available} codebooks, not {wanted}")
    return wanted or available
