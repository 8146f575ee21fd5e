"""XEUS for tests: a small checkpoint as ESPnet writes it, and an encoder of its own.

It is written from the description of the model, in functions over the checkpoint's tensors, and
shares nothing with the one that is tested.
"""

import math
from pathlib import Path
from typing import Any

import torch
import yaml
from torch.nn import functional

Tensors = dict[str, torch.Tensor]

WIDTH, HEADS, GATING, INNER, BLOCKS, CHANNELS = 32, 4, 24, 20, 3, 8
KERNELS, STRIDES = (10, 3, 3, 3, 3, 2, 2), (5, 2, 2, 2, 2, 2, 2)
TRAINING: dict[str, Any] = {
    "frontend": "cnn",
    "frontend_conf": {
        "norm_mode": "layer_norm",
        "conv_mode": "standard",
        "bias": True,
        "normalize_output": True,
        "shapes": [[CHANNELS, k, s] for k, s in zip(KERNELS, STRIDES, strict=True)],
    },
    "specaug": None,
    "normalize": None,
    "preencoder": "linear",
    "preencoder_conf": {"input_size": CHANNELS, "output_size": WIDTH, "dropout": 0.1},
    "encoder": "e_branchformer",
    "encoder_conf": {
        "output_size": WIDTH,
        "attention_heads": HEADS,
        "attention_layer_type": "selfattn",
        "pos_enc_layer_type": "conv",
        "rel_pos_type": "latest",
        "cgmlp_linear_units": GATING,
        "cgmlp_conv_kernel": 5,
        "num_blocks": BLOCKS,
        "dropout_rate": 0.1,
        "input_layer": None,
        "use_ffn": True,
        "macaron_ffn": True,
        "linear_units": INNER,
        "merge_conv_kernel": 7,
        "layer_drop_rate": 0.1,
    },
    "loss": [{"name": "hubert", "conf": {"num_classes": 2048}}],
}


def write(directory: Path, seed: int) -> Tensors:
    """config.yaml and the weights; returns the weights."""
    directory.mkdir(exist_ok=True)
    (directory / "config.yaml").write_text(yaml.safe_dump(TRAINING))
    tensors = _weights(torch.Generator().manual_seed(seed))
    torch.save(tensors, directory / "xeus_checkpoint_new.pth")
    return tensors


def features(tensors: Tensors, wave: torch.Tensor, layer: int) -> torch.Tensor:
    """Of ``layer`` (1 to BLOCKS), [frames, WIDTH], of samples [n]."""
    signal = wave[None]  # [channels, time]
    for index, stride in enumerate(STRIDES):
        name = f"frontend.layers.{index}"
        weight, bias = tensors[f"{name}.conv.weight"], tensors[f"{name}.conv.bias"]
        signal = functional.conv1d(signal[None], weight, bias, stride)[0]
        signal = _gelu(_norm(tensors, f"{name}.layer_norm", signal.T, 1e-5)).T
    rows = _norm(tensors, "frontend.final_norm", signal.T, 1e-5)
    rows = _linear(tensors, "preencoder.linear_out", rows)

    name = "encoder.embed.0.convs.0"
    direction = tensors[f"{name}.parametrizations.weight.original1"]
    size = direction.square().sum(dim=(0, 1), keepdim=True).sqrt()
    weight = tensors[f"{name}.parametrizations.weight.original0"] * direction / size
    padded = functional.pad(rows.T, (64, 63))
    rows = functional.conv1d(padded[None], weight, tensors[f"{name}.bias"], groups=16)[0].T
    rows = _gelu(rows)

    for number in range(layer):
        rows = _block(tensors, f"encoder.encoders.{number}", rows)
    return _norm(tensors, "encoder.after_norm", rows) if layer == BLOCKS else rows


def _block(tensors: Tensors, name: str, rows: torch.Tensor) -> torch.Tensor:
    def feed_forward(kind: str, norm: str) -> torch.Tensor:
        inner = _linear(tensors, f"{name}.{kind}.w_1", _norm(tensors, f"{name}.{norm}", rows))
        return _linear(tensors, f"{name}.{kind}.w_2", inner * inner.sigmoid()) / 2

    rows = rows + feed_forward("feed_forward_macaron", "norm_ff_macaron")

    normed = _norm(tensors, f"{name}.norm_mha", rows)
    query, key, value = (_linear(tensors, f"{name}.attn.linear_{kind}", normed) for kind in "qkv")
    size = WIDTH // HEADS
    heads = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = query[:, part] @ key[:, part].T / math.sqrt(size)
        heads.append(scores.softmax(dim=1) @ value[:, part])
    attended = _linear(tensors, f"{name}.attn.linear_out", torch.cat(heads, dim=1))

    normed = _norm(tensors, f"{name}.norm_mlp", rows)
    inner = _gelu(_linear(tensors, f"{name}.cgmlp.channel_proj1.0", normed))
    kept, gate = inner[:, : GATING // 2], inner[:, GATING // 2 :]
    gate = _norm(tensors, f"{name}.cgmlp.csgu.norm", gate)
    gated = kept * _depthwise(tensors, f"{name}.cgmlp.csgu.conv", gate)
    gated = _linear(tensors, f"{name}.cgmlp.channel_proj2", gated)

    both = torch.cat([attended, gated], dim=1)
    both = both + _depthwise(tensors, f"{name}.depthwise_conv_fusion", both)
    rows = rows + _linear(tensors, f"{name}.merge_proj", both)
    rows = rows + feed_forward("feed_forward", "norm_ff")
    return _norm(tensors, f"{name}.norm_final", rows)


def _linear(tensors: Tensors, name: str, rows: torch.Tensor) -> torch.Tensor:
    return rows @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def _norm(tensors: Tensors, name: str, rows: torch.Tensor, epsilon: float = 1e-12) -> torch.Tensor:
    centred = rows - rows.mean(dim=1, keepdim=True)
    spread = (centred.square().mean(dim=1, keepdim=True) + epsilon).sqrt()
    return centred / spread * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def _depthwise(tensors: Tensors, name: str, rows: torch.Tensor) -> torch.Tensor:
    weight = tensors[f"{name}.weight"][:, 0]
    reach = weight.shape[1] // 2
    windows = functional.pad(rows, (0, 0, reach, reach)).unfold(0, weight.shape[1], 1)
    return (windows * weight).sum(dim=2) + tensors[f"{name}.bias"]


def _gelu(rows: torch.Tensor) -> torch.Tensor:
    return rows * (1 + torch.erf(rows / math.sqrt(2))) / 2


def _weights(random: torch.Generator) -> Tensors:
    tensors: Tensors = {}

    def normal(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return torch.randn(*shape, generator=random) * scale

    def weight(name: str, *shape: int) -> None:
        tensors[f"{name}.weight"] = normal(*shape, scale=math.prod(shape[1:]) ** -0.5)
        tensors[f"{name}.bias"] = normal(shape[0], scale=0.1)

    def norm(name: str, width: int) -> None:
        tensors[f"{name}.weight"] = 1 + normal(width, scale=0.1)
        tensors[f"{name}.bias"] = normal(width, scale=0.1)

    inputs = 1
    for index, kernel in enumerate(KERNELS):
        weight(f"frontend.layers.{index}.conv", CHANNELS, inputs, kernel)
        norm(f"frontend.layers.{index}.layer_norm", CHANNELS)
        inputs = CHANNELS
    norm("frontend.final_norm", CHANNELS)
    weight("preencoder.linear_out", WIDTH, CHANNELS)
    name = "encoder.embed.0.convs.0"
    tensors[f"{name}.bias"] = normal(WIDTH, scale=0.1)
    tensors[f"{name}.parametrizations.weight.original0"] = 0.5 + normal(1, 1, 128).abs()
    tensors[f"{name}.parametrizations.weight.original1"] = normal(WIDTH, WIDTH // 16, 128)
    for number in range(BLOCKS):
        name = f"encoder.encoders.{number}"
        for kind in ("q", "k", "v", "out"):
            weight(f"{name}.attn.linear_{kind}", WIDTH, WIDTH)
        weight(f"{name}.cgmlp.channel_proj1.0", GATING, WIDTH)
        norm(f"{name}.cgmlp.csgu.norm", GATING // 2)
        weight(f"{name}.cgmlp.csgu.conv", GATING // 2, 1, 5)
        weight(f"{name}.cgmlp.channel_proj2", WIDTH, GATING // 2)
        for kind in ("feed_forward", "feed_forward_macaron"):
            weight(f"{name}.{kind}.w_1", INNER, WIDTH)
            weight(f"{name}.{kind}.w_2", WIDTH, INNER)
        for kind in ("ff", "ff_macaron", "mha", "mlp", "final"):
            norm(f"{name}.norm_{kind}", WIDTH)
        weight(f"{name}.depthwise_conv_fusion", 2 * WIDTH, 1, 7)
        weight(f"{name}.merge_proj", WIDTH, 2 * WIDTH)
    norm("encoder.after_norm", WIDTH)
    tensors["losses.0.decoder.label_embeddings"] = normal(10, 4)
    tensors["util_modules.mask.mask_emb"] = normal(WIDTH)
    tensors["global_step"] = torch.tensor([7])
    return tensors
