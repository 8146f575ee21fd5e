"""Bagpiper as ESPnet publishes it: ``model.pt``, a torch file ``{"module": state_dict}``."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
)
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import Qwen3OmniMoeAudioEncoder

from tests.official.checkpoint import (
    HIDDEN,
    OfficialCheckpoint,
    backbone_config,
    body,
    make_readable,
    vocabulary_tensors,
    write_beside,
)
from vocoder_service.tiny import make_tiny_xcodec

VOCABULARY = 256 + 151936 + 8 * 1025
STREAMS = 8
TEXT = 256
_EOS, _EOT = 2, 3
INFERENCE = "inference.yaml"
TOWER_PREFIX = "multimodal_io_dict.continuous_audio.model.audio_tower."
CODEC_PREFIX = "multimodal_io_dict.discrete_audio.codec_model."
AUDIO = {
    "num_mel_bins": 128,
    "d_model": 32,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "output_dim": 24,
    "downsample_hidden_size": 8,
    "max_source_positions": 1500,
    "n_window": 50,
    "n_window_infer": 800,
    "conv_chunksize": 500,
}


def write_bagpiper_tts(
    folder: Path, seed: int = 0, *, readable: bool = False
) -> OfficialCheckpoint:
    """Writes one that plans before it speaks: ``inference.yaml`` lies beside it."""
    (folder / INFERENCE).write_text(
        "dtype: bfloat16\n"
        "num_hypo: 1\n"
        'enforce_modality: ["text", "audio"]\n'
        "text: {temperature: 0.6, topk: 20, cfg: 1, max_step: 2048}\n"
        "audio: {temperature: 0.8, topk: 20, cfg: 3, max_step: 2048}\n"
    )
    return write_bagpiper(folder, seed, readable=readable)


def write_bagpiper(folder: Path, seed: int = 0, *, readable: bool = False) -> OfficialCheckpoint:
    """Writes a tiny one, in bfloat16 as the published ones are.

    Args:
        readable: see ``make_readable``.
    """
    generator = torch.Generator().manual_seed(seed)
    config = backbone_config("qwen3", 151936)
    embedding, head = vocabulary_tensors(VOCABULARY, (_EOS, _EOT), generator)
    if readable:
        make_readable(head, range(TEXT, TEXT + 151936), (_EOS, _EOT), 0.5)
    state = {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        # ESPnet adds nothing on stream 0, whatever stands there.
        "stream_emb.weight": torch.randn(STREAMS, HIDDEN, generator=generator) * 0.3,
        "adaptor.continuous_audio.weight": torch.randn(HIDDEN, 24, generator=generator) / 3,
        "adaptor.continuous_audio.bias": torch.randn(HIDDEN, generator=generator) / 8,
    }
    state |= {f"model.{name}": tensor for name, tensor in body(config, generator).items()}
    state |= {TOWER_PREFIX + name: tensor for name, tensor in _audio_tower(generator).items()}
    make_tiny_xcodec(folder / "codec", seed)
    codec = load_file(folder / "codec" / "model.safetensors")
    state |= {CODEC_PREFIX + name: tensor for name, tensor in codec.items()}
    state = {name: _bfloat16(tensor) for name, tensor in state.items()}
    state["vocab_weight"] = torch.ones(VOCABULARY)
    torch.save({"module": state}, folder / "model.pt")

    audio_config = folder / "audio_config.json"
    audio_config.write_text(json.dumps({"thinker_config": {"audio_config": AUDIO}}))
    backbone, tokenizer = write_beside(folder, config)
    codec_config = str(folder / "codec" / "config.json")
    options = ("--audio-config", str(audio_config), "--codec-config", codec_config)
    return OfficialCheckpoint("bagpiper", folder / "model.pt", backbone, tokenizer, TEXT, options)


def _audio_tower(generator: torch.Generator) -> dict[str, Tensor]:
    with torch.device("meta"):
        encoder = Qwen3OmniMoeAudioEncoder(Qwen3OmniMoeAudioEncoderConfig(**AUDIO))
    tensors = {}
    for name, like in encoder.state_dict().items():
        noise = torch.randn(like.shape, generator=generator)
        if like.dim() > 1:
            tensors[name] = noise * like[0].numel() ** -0.5
        else:
            tensors[name] = noise / 10 + float(name.endswith("weight"))  # norms are near 1
    return tensors


def _bfloat16(tensor: Tensor) -> Tensor:
    return tensor.bfloat16() if tensor.is_floating_point() else tensor
