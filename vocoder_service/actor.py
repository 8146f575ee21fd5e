"""The vocoder service as a Ray actor, a child of the engine replica it works for."""

from typing import NamedTuple

import numpy as np
import ray
import torch
from numpy.typing import NDArray

from vocoder_service.clips import AudioEncoder, Encoded, EncoderLimits, Samples
from vocoder_service.codec import load_codec
from vocoder_service.encoder import load_encoder
from vocoder_service.encoding import EncodingService
from vocoder_service.service import VocoderService, VocoderStats

_FIRST_FRAMES = 16


class CodecInfo(NamedTuple):
    """What the owner of a vocoder needs to know of its codec."""

    sample_rate: int
    """Samples per second of the PCM."""
    hop_length: int
    """Samples per frame."""
    num_codebooks: int
    codebook_size: int
    right_context: int
    """Frames that must follow a window before it can be decoded."""


class Decoded(NamedTuple):
    """What became of the frames that were pushed."""

    pcm: bytes
    load: float
    """Of the vocoder, see ``VocoderService.load``."""


class CodesEncoder(NamedTuple):
    """An encoder whose codes a model reads; where its parts are."""

    codec: str
    ssl: str | None
    """None where the first stream is a codec's."""


class EmbeddingEncoder(NamedTuple):
    """An encoder of continuous audio, see ``AudioTower``."""

    directory: str
    width: int
    """Of the model that reads its rows."""


class _VocoderActor:
    """``VocoderService`` with a codec of its own; see there for each method."""

    def __init__(
        self,
        codec_directory: str,
        max_window: int = 64,
        max_batch: int = 32,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        num_codebooks: int | None = None,
        memory_share: float | None = None,
        encoder: CodesEncoder | EmbeddingEncoder | None = None,
    ) -> None:
        """
        Args:
            memory_share: of the GPU's memory that this process may take; None: all there is.
            others: see ``load_codec`` and ``VocoderService``.
        """
        if memory_share is not None:
            torch.cuda.set_per_process_memory_fraction(memory_share)
        self._codec = load_codec(codec_directory, device, dtype, num_codebooks)
        self._service = VocoderService(self._codec, max_window, max_batch)
        self._service.warm_up(_FIRST_FRAMES)

        self._encoding = None
        if encoder is not None:
            loaded = _load(encoder, device, num_codebooks)
            if loaded.sample_rate != self._codec.sample_rate:
                raise ValueError(
                    f"the encoder hears {loaded.sample_rate} Hz, the codec speaks "
                    f"{self._codec.sample_rate} Hz"
                )
            self._encoding = EncodingService(loaded)

    async def ready(self) -> CodecInfo:
        """Answers once the codec is loaded and has decoded."""
        codec = self._codec
        return CodecInfo(
            codec.sample_rate,
            codec.hop_length,
            codec.num_codebooks,
            codec.codebook_size,
            codec.right_context,
        )

    async def open(self, stream_id: str) -> None:
        self._service.open(stream_id)

    async def push(self, stream_id: str, frames: NDArray[np.integer]) -> Decoded:
        return Decoded(await self._service.push(stream_id, frames), self._service.load)

    async def finish(self, stream_id: str, frames: NDArray[np.integer] | None = None) -> Decoded:
        return Decoded(await self._service.finish(stream_id, frames), self._service.load)

    async def abort(self, stream_id: str) -> None:
        self._service.abort(stream_id)

    async def encoder_limits(self) -> EncoderLimits | None:
        """Of the clips that the encoder takes; None: there is none."""
        return None if self._encoding is None else self._encoding.limits

    async def encode(self, samples: Samples) -> Encoded:
        """See ``EncodingService.encode``.

        Raises:
            RuntimeError: this actor has no encoder.
        """
        if self._encoding is None:
            raise RuntimeError("this model takes no audio")
        return await self._encoding.encode(samples)

    async def stats(self) -> VocoderStats:
        return self._service.stats()

    async def gpu_memory(self) -> int | None:
        """Bytes of the GPU's memory that PyTorch holds; None without a GPU."""
        return torch.cuda.memory_reserved() if torch.cuda.is_initialized() else None

    async def check_health(self) -> None:
        self._service.check_health()


def _load(
    encoder: CodesEncoder | EmbeddingEncoder, device: str, num_codebooks: int | None
) -> AudioEncoder:
    if isinstance(encoder, CodesEncoder):
        return load_encoder(encoder.codec, encoder.ssl, device, num_codebooks)
    from vocoder_service.audio_tower import AudioTower  # slow to import

    return AudioTower.load(encoder.directory, encoder.width, device)


VocoderActor = ray.remote(num_cpus=0)(_VocoderActor)
"""The actor class. An engine replica makes ``VocoderActor.options(num_gpus=...).remote(...)``.

Ray puts a child of a Serve replica into the replica's placement group, so both share a device, and
ends it with its parent. ``num_cpus=0`` lets it fit a bundle whose CPUs the replica has taken.
"""
