"""EnCodec: convolutions around an LSTM."""

from pathlib import Path
from typing import Any

import torch
from transformers import EncodecConfig

from vocoder_service.checkpoint import read_safetensors, under, without_weight_norm
from vocoder_service.seanet import seanet_decoder
from vocoder_service.staged import (
    Codebooks,
    StagedCodec,
    codebooks_used,
    seanet_config,
    stages_around_lstm,
    tensor,
)


def load_encodec(
    directory: Path, device: str, dtype: torch.dtype, num_codebooks: int | None
) -> StagedCodec:
    """EnCodec of one channel. See ``load_codec``.

    Raises:
        ValueError: it needs whole recordings: stereo, cut into chunks, or normalised over time.
    """
    config: Any = EncodecConfig.from_pretrained(directory)
    if config.audio_channels != 1 or config.chunk_length_s or config.norm_type != "weight_norm":
        raise ValueError("an EnCodec in stereo, in chunks or normalised over time cannot be served")
    used = codebooks_used(config.num_quantizers, num_codebooks)
    tensors = read_safetensors(directory, ("quantizer", "decoder"))
    decoder = seanet_decoder(seanet_config(config, config.num_lstm_layers))
    decoder.load_state_dict(without_weight_norm(under(tensors, "decoder.layers.")))
    name = "quantizer.layers.{}.codebook.embed"
    tables = [tensor(tensors, name.format(index)) for index in range(used)]
    stages = stages_around_lstm(Codebooks(tables), decoder, device, dtype)
    return StagedCodec(stages, config.sampling_rate, used, config.codebook_size)
