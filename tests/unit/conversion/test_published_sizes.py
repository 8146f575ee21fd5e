"""Checkpoints of the published sizes, without data: they fit what is known of the backbones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import XcodecConfig, XcodecModel
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
)
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import Qwen3OmniMoeAudioEncoder

from engine_adapter.conversion.conversion import Conversion, Request
from tests.official.opuslm import write_training_config

Shapes = dict[str, tuple[int, ...]]


def save(shapes: Shapes, dtype: torch.dtype, file: Path) -> None:
    """A sparse file."""
    with torch.serialization.skip_data():
        torch.save({name: torch.empty(shape, dtype=dtype) for name, shape in shapes.items()}, file)


def layers(prefix: str, count: int, width: int, key_width: int, inner: int) -> Shapes:
    """Of a decoder's layers, norms aside."""
    one = {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (key_width, width),
        "self_attn.v_proj": (key_width, width),
        "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (inner, width),
        "mlp.up_proj": (inner, width),
        "mlp.down_proj": (width, inner),
    }
    numbers = range(count)
    return {
        f"{prefix}layers.{i}.{name}.weight": shape for i in numbers for name, shape in one.items()
    }


def norms(prefix: str, count: int, sizes: dict[str, int]) -> Shapes:
    return {
        f"{prefix}layers.{i}.{name}.weight": (size,)
        for i in range(count)
        for name, size in sizes.items()
    }


def test_bagpiper(tmp_path: Path) -> None:
    """1382 tensors, as its publisher counts them."""
    with torch.device("meta"):
        tower = Qwen3OmniMoeAudioEncoder(Qwen3OmniMoeAudioEncoderConfig(output_dim=2048))
        codec = XcodecModel(XcodecConfig())
    each = {
        "self_attn.q_norm": 128,
        "self_attn.k_norm": 128,
        "input_layernorm": 4096,
        "post_attention_layernorm": 4096,
    }
    shapes: Shapes = {
        **layers("model.", 36, 4096, 1024, 12288),
        **norms("model.", 36, each),
        "model.norm.weight": (4096,),
        "model.embed_tokens.weight": (160392, 4096),
        "lm_head.weight": (160392, 4096),
        "stream_emb.weight": (8, 4096),
        "adaptor.continuous_audio.weight": (4096, 2048),
        "adaptor.continuous_audio.bias": (4096,),
        "vocab_weight": (160392,),
    }
    for prefix, module in (
        ("multimodal_io_dict.continuous_audio.model.audio_tower.", tower),
        ("multimodal_io_dict.discrete_audio.codec_model.", codec),
    ):
        shapes |= {prefix + name: tuple(t.shape) for name, t in module.state_dict().items()}
    assert len(shapes) == 1382
    save(shapes, torch.bfloat16, tmp_path / "model.pt")
    conversion = Conversion.prepare(Request("bagpiper", tmp_path / "model.pt"))
    sizes = {part: len(tensors) for part, tensors in conversion.plan.parts.items()}
    assert sizes == {"model": 400, "audio_encoder": 525, "adaptor": 2, "codec": 454}
    assert not conversion.plan.unknown


@pytest.mark.parametrize("own_codec_head", [False, True])
def test_opuslm(own_codec_head: bool, tmp_path: Path) -> None:
    prefix = "corelm.decoders.model."
    each = {
        "self_attn.q_norm": 4096,
        "self_attn.k_norm": 4096,
        "post_attention_layernorm": 4096,
        "post_feedforward_layernorm": 4096,
    }
    shapes: Shapes = {
        **layers(prefix, 32, 4096, 4096, 11008),
        **norms(prefix, 32, each),
        f"{prefix}norm.weight": (4096,),
        "corelm.emb.weight": (113870, 4096),
        "corelm.lm_head.weight": (113870, 4096),
        "corelm.head_emb.weight": (12, 4096),
    }
    if own_codec_head:
        shapes["corelm.aux_lm_head.weight"] = (8192, 4096)
    save(shapes, torch.bfloat16, tmp_path / "model.pth")
    write_training_config(tmp_path, 100352)
    conversion = Conversion.prepare(Request("opuslm", tmp_path / "model.pth"))
    assert conversion.weight_bytes == 14_818_787_328  # of 14,886,005,245 bytes of the file


def test_opuslm_dialogue(tmp_path: Path) -> None:
    """221 tensors, one of them the loss's."""
    prefix = "corelm.decoders.model."
    shapes: Shapes = {
        **layers(prefix, 24, 2048, 2048, 8192),
        **norms(prefix, 24, {"input_layernorm": 2048, "post_attention_layernorm": 2048}),
        f"{prefix}norm.weight": (2048,),
        "corelm.emb.weight": (62670, 2048),
        "corelm.lm_head.weight": (62670, 2048),
        "corelm.head_emb.weight": (12, 2048),
        "criterion.lm_head.weight": (62670, 2048),
    }
    assert len(shapes) == 221
    save(shapes, torch.float32, tmp_path / "2epoch.pth")
    write_training_config(tmp_path, 49152)
    conversion = Conversion.prepare(Request("opuslm-dialogue", tmp_path / "2epoch.pth"))
    assert conversion.weight_bytes == 7_469_711_360  # of 7,469,766,446 bytes of the file
