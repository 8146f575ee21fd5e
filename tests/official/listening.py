"""What OpusLM hears through: a DAC and XEUS as ESPnet publishes them, and by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from tests.official.opuslm import CODES, SSL, STREAMS
from tests.unit.vocoder import espnet_dac, espnet_xeus

HOP, RATE = 320, 16_000
_REACH = 400  # samples that a frame of XEUS reads


@dataclass(frozen=True)
class Listening:
    """Both, as files and as tensors.

    Attributes:
        codec: the directory of the DAC.
        ssl: that of XEUS and its centroids.
        dac: tensors of the DAC.
        xeus: tensors of XEUS.
        centroids: ``[units, width]``.
    """

    codec: Path
    ssl: Path
    dac: espnet_dac.Tensors
    xeus: espnet_xeus.Tensors
    centroids: torch.Tensor

    def codes(self, samples: NDArray[np.float32]) -> list[list[int]]:
        """A clip's frames of all streams."""
        wave = torch.nn.functional.pad(torch.from_numpy(samples), (0, -len(samples) % HOP))
        beyond = torch.nn.functional.pad(wave, (0, _REACH - HOP))
        features = espnet_xeus.features(self.xeus, beyond, espnet_xeus.BLOCKS)
        units = torch.cdist(features, self.centroids).argmin(dim=1)
        frames = torch.cat([units[None], espnet_dac.encode(self.dac, wave)])
        codes: list[list[int]] = frames.T.tolist()
        return codes

    def audio(self, codes: list[list[int]]) -> NDArray[np.float32]:
        """The sound of frames, not clipped; the SSL stream has none."""
        frames = torch.tensor(codes)[:, 1:].T[None]
        sound: NDArray[np.float32] = espnet_dac.decode(self.dac, frames)[0].numpy()
        return sound


def write_listening(folder: Path, seed: int = 0) -> Listening:
    """Writes tiny ones."""
    codec, ssl = folder / "dac", folder / "xeus"
    dac = espnet_dac.write(codec, seed, codes=CODES // (STREAMS - 1))
    xeus = espnet_xeus.write(ssl, seed)
    generator = torch.Generator().manual_seed(seed)
    centroids = torch.randn(SSL, espnet_xeus.WIDTH, generator=generator)
    save_file({"centroids": centroids}, ssl / "centroids.safetensors")
    return Listening(codec, ssl, dac, xeus, centroids)
