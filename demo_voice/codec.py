"""The codec: codes of all speech, and a decoder trained to turn them back into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm
from transformers.models.dac.modeling_dac import DacDecoder, DacResidualVectorQuantizer

from demo_voice import quantizer as quantizers
from demo_voice.checkpoints import Checkpoint, learning_rate
from demo_voice.features import frame_features, mel_filters, num_frames
from demo_voice.recipe import HOP, CodecRecipe, Recipe
from demo_voice.shards import (
    Utterance,
    code_shards,
    read_codes,
    read_speech,
    speech_shards,
    write_codes,
)

QUANTIZER_FILE = "quantizer.safetensors"
DECODER_FILE = "decoder.pt"
_RESOLUTIONS = (256, 512, 1024)  # window lengths of the spectra that are compared
_FLOOR = 2e-2  # of a magnitude in a logarithm: near digital silence its gradient explodes


def fit_quantizer(work: Path, recipe: Recipe) -> None:
    """Fits the quantizer on the first shards and stores it."""
    if (work / QUANTIZER_FILE).exists():
        return
    features: list[Tensor] = []
    frames = 0
    for index in speech_shards(work):
        for utterance in read_speech(work, index):
            features.append(frame_features(utterance.samples))
            frames += len(features[-1])
            if frames >= recipe.codec.fit_frames:
                break
        if frames >= recipe.codec.fit_frames:
            break
    fitted = quantizers.fit(torch.cat(features), recipe.codec, recipe.seed)
    save_file(fitted.state_dict(), work / QUANTIZER_FILE)


def load_quantizer(work: Path, recipe: CodecRecipe) -> DacResidualVectorQuantizer:
    """The quantizer that was fitted."""
    module = DacResidualVectorQuantizer(quantizers.dac_config(recipe))
    module.load_state_dict(load_file(work / QUANTIZER_FILE))
    return module.eval().requires_grad_(False)


def encode_shards(work: Path, recipe: Recipe) -> None:
    """Writes the codes of every shard that has none yet."""
    quantizer = load_quantizer(work, recipe.codec)
    done = set(code_shards(work))
    for index in tqdm([i for i in speech_shards(work) if i not in done], desc="codes"):
        coded = []
        for utterance in read_speech(work, index):
            codes = quantizers.encode(quantizer, frame_features(utterance.samples))
            array = codes.numpy().astype(np.uint8)
            coded.append(Utterance(utterance.text, utterance.voice, utterance.samples, array))
        write_codes(work, index, coded)


class _Crops:
    """Random crops of speech with their codes, seeded by the step and therefore resumable."""

    def __init__(self, work: Path, recipe: Recipe) -> None:
        self._recipe = recipe
        speech: list[NDArray[np.int16]] = []
        codes: list[NDArray[np.uint8]] = []
        for index in code_shards(work)[:8]:
            pairs = zip(read_speech(work, index), read_codes(work, index), strict=True)
            for spoken, coded in pairs:
                if len(coded.codes) >= recipe.codec.crop:
                    padded = np.zeros(num_frames(len(spoken.samples)) * HOP, dtype=np.int16)
                    padded[: len(spoken.samples)] = spoken.samples
                    speech.append(padded)
                    codes.append(coded.codes)
        self._speech, self._codes = speech, codes

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Codes int64 ``[batch, codebooks, crop]``; samples float32 ``[batch, crop * HOP]``."""
        recipe = self._recipe.codec
        random = np.random.default_rng((self._recipe.seed, step))
        waves, codes = [], []
        for pick in random.integers(len(self._speech), size=recipe.batch):
            start = random.integers(len(self._codes[pick]) - recipe.crop + 1)
            codes.append(self._codes[pick][start : start + recipe.crop].T)
            waves.append(self._speech[pick][start * HOP : (start + recipe.crop) * HOP])
        wave = torch.from_numpy(np.stack(waves).astype(np.float32) / 32768)
        return torch.from_numpy(np.stack(codes).astype(np.int64)), wave


def spectral_loss(output: Tensor, target: Tensor) -> Tensor:
    """How far two batches of waves, float32 ``[batch, samples]``, sound apart.

    Log-mel distance, log and plain magnitude distances at three resolutions, and a little of
    the waves' own distance, which decides between phases that sound alike.
    """
    loss = (output - target).abs().mean()
    for size in _RESOLUTIONS:
        window = torch.hann_window(size, device=output.device)
        ours, theirs = (
            torch.stft(
                wave, size, hop_length=size // 4, window=window, center=False, return_complex=True
            ).abs()
            for wave in (output, target)
        )
        loss = loss + (ours - theirs).abs().mean()
        loss = loss + 0.5 * ((ours + _FLOOR).log() - (theirs + _FLOOR).log()).abs().mean()
        if size >= 512:
            filters = mel_filters(size // 2 + 1).T.to(output.device)
            mels = [torch.log10(filters @ x + _FLOOR) for x in (ours, theirs)]
            loss = loss + 4.0 * (mels[0] - mels[1]).abs().mean()
    return loss


def train_decoder(work: Path, recipe: Recipe, device: str) -> Iterator[tuple[int, float]]:
    """Trains the decoder; yields (step, loss) and resumes where it was interrupted."""
    sizes = recipe.codec
    quantizer = load_quantizer(work, sizes).to(device)
    torch.manual_seed(recipe.seed)
    decoder = DacDecoder(quantizers.dac_config(sizes)).to(device)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=sizes.rate, betas=(0.8, 0.95))
    checkpoint = Checkpoint(work / DECODER_FILE)
    first = 0
    if state := checkpoint.load():
        decoder.load_state_dict(state["decoder"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    crops = _Crops(work, recipe)
    inner = slice(sizes.margin * HOP, (sizes.crop - sizes.margin) * HOP)
    for step in range(first, sizes.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(
                step, steps=sizes.steps, warmup=sizes.warmup, decay=0.8, peak=sizes.rate
            )
        codes, wave = (tensor.to(device) for tensor in crops.batch(step))
        latents = quantizer.from_codes(codes)[0]
        output = decoder(latents).squeeze(1)
        loss = spectral_loss(output[:, inner], wave[:, inner])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        optimizer.step()
        if checkpoint.due() or step + 1 == sizes.steps:
            checkpoint.save(
                {
                    "step": step + 1,
                    "decoder": decoder.state_dict(),
                    "optimizer": optimizer.state_dict(),
                }
            )
        yield step, float(loss.detach())


def load_decoder(work: Path, recipe: CodecRecipe) -> DacDecoder:
    """The decoder as it was saved last."""
    state = Checkpoint(work / DECODER_FILE).load()
    if state is None:
        raise FileNotFoundError(f"{work / DECODER_FILE}: the decoder has not been trained")
    decoder = DacDecoder(quantizers.dac_config(recipe))
    decoder.load_state_dict(state["decoder"])
    return decoder.eval().requires_grad_(False)
