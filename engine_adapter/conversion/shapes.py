"""Names and shapes of the tensors that a configuration asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from engine_adapter.checkpoint import STREAM_EMBEDDING
from engine_adapter.conversion.errors import ConversionError
from engine_adapter.conversion.formats import Shapes
from engine_adapter.spec import StreamSpec

AUDIO_ENCODER_TYPE = "qwen3_omni_moe_audio_encoder"
# What Qwen3-Omni-30B-A3B-Instruct says of its audio encoder.
AUDIO_ENCODER_CONFIG: dict[str, Any] = {
    "model_type": AUDIO_ENCODER_TYPE,
    "num_mel_bins": 128,
    "d_model": 1280,
    "encoder_layers": 32,
    "encoder_attention_heads": 20,
    "encoder_ffn_dim": 5120,
    "output_dim": 2048,
    "downsample_hidden_size": 480,
    "max_source_positions": 1500,
    "n_window": 50,
    "n_window_infer": 800,
    "conv_chunksize": 500,
    "activation_function": "gelu",
    "scale_embedding": False,
}


def model_shapes(config: Mapping[str, Any], spec: StreamSpec) -> Shapes:
    """Of the backbone with the family's vocabulary, and of the stream embedding."""
    from transformers import AutoConfig, AutoModelForCausalLM  # slow to import

    values = {k: v for k, v in config.items() if k not in ("model_type", "architectures")}

    def build() -> nn.Module:
        model: nn.Module = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(config["model_type"], **values)
        )
        return model

    hidden = config["hidden_size"]
    return {**_shapes(build, "the backbone"), STREAM_EMBEDDING: (spec.num_streams, hidden)}


def audio_encoder_shapes(config: Mapping[str, Any]) -> Shapes:
    """Of the encoder of continuous audio."""
    from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
        Qwen3OmniMoeAudioEncoderConfig,
    )
    from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import (
        Qwen3OmniMoeAudioEncoder,
    )

    values = {k: v for k, v in config.items() if k != "model_type"}

    def build() -> nn.Module:
        model: nn.Module = Qwen3OmniMoeAudioEncoder(Qwen3OmniMoeAudioEncoderConfig(**values))
        return model

    return _shapes(build, "the audio encoder")


def adaptor_shapes(encoder: Mapping[str, Any], hidden: int) -> Shapes:
    """Of the layer from the audio encoder to the backbone."""
    return {"weight": (hidden, encoder["output_dim"]), "bias": (hidden,)}


def xcodec_config(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The configuration of an X-Codec; where nothing is given, of the published one."""
    from transformers import XcodecConfig

    config: dict[str, Any] = XcodecConfig(**(given or {})).to_dict()
    return {**config, "architectures": ["XcodecModel"]}


def xcodec_shapes(config: Mapping[str, Any]) -> Shapes:
    """Of an X-Codec, both halves."""
    from transformers import XcodecConfig, XcodecModel

    def build() -> nn.Module:
        model: nn.Module = XcodecModel(XcodecConfig(**config))
        return model

    return _shapes(build, "the codec")


def _shapes(build: Callable[[], nn.Module], what: str) -> Shapes:
    try:
        with torch.device("meta"):
            model = build()
    except (TypeError, ValueError, KeyError, ZeroDivisionError, RuntimeError) as error:
        raise ConversionError(f"the configuration of {what} is not usable: {error}") from error
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
