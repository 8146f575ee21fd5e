"""The encoding half of ESPnet's DAC; the other one is in ``espnet``."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from vocoder_service.clips import EncoderLimits, checked, whole_frames
from vocoder_service.espnet import Codebook, EspnetDac
from vocoder_service.nearest import nearest
from vocoder_service.seanet_encoder import Step, seanet_encoder


class EspnetEncoder:
    """Waveform in, codes out. See ``AudioEncoder``."""

    def __init__(
        self,
        steps: list[Step],
        codebooks: list[Codebook],
        device: str,
        sample_rate: int,
        hop_length: int,
    ) -> None:
        """
        Args:
            steps: from audio [1, samples, 1] to [1, frames, hidden_dim].
            codebooks: each of which reads what the ones before it have left.
            hop_length: samples per frame.
        """
        self._steps, self._codebooks, self._device = steps, codebooks, device
        self.sample_rate, self.hop_length = sample_rate, hop_length
        self.num_codebooks = len(codebooks)
        self.limits = EncoderLimits(hop_length)

    @torch.inference_mode()
    def encode(self, samples: NDArray[np.float32]) -> NDArray[np.int32]:
        wave = whole_frames(checked(samples), self.hop_length)
        signal = torch.from_numpy(wave)[None, :, None].to(self._device)
        for step in self._steps:
            signal = step(signal)
        left, codes = signal[0], []
        for book in self._codebooks:
            vectors = left if book.projection is None else functional.linear(left, *book.projection)
            found = nearest(vectors, book.keys)
            left = left - book.values[found]
            codes.append(found)
        return torch.stack(codes, dim=1).cpu().numpy().astype(np.int32)


def load_espnet_encoder(
    config: Path, device: str = "cpu", num_codebooks: int | None = None
) -> EspnetEncoder:
    """The encoder of the codec that ``config`` (config.yaml) describes, in float32.

    Raises:
        FileNotFoundError: there is not exactly one .pth file.
        ValueError: another codec than DAC, one of a form that cannot be served, or fewer codebooks
            than wanted.
        RuntimeError: the weights do not fit the configuration.
    """
    dac = EspnetDac.open(config)
    return EspnetEncoder(
        seanet_encoder(dac.seanet, dac.half("encoder", device, torch.float32), ""),
        dac.codebooks(num_codebooks, device, torch.float32),
        device,
        dac.sample_rate,
        int(np.prod(dac.seanet.upsampling_ratios)),
    )
