"""ESPnet's DAC for tests: a small checkpoint as ESPnet writes it, and a codec of its own.

It is written from the description of the model, in functions over the checkpoint's tensors, and
shares nothing with the one that is tested.
"""

from pathlib import Path
from typing import Any

import torch
import yaml
from torch.nn import functional

Tensors = dict[str, torch.Tensor]

RATIOS = (8, 5, 4, 2)
RESIDUALS = 3
HIDDEN, FILTERS, STREAMS, CODES = 12, 2, 8, 64
GENERATOR = {
    "hidden_dim": HIDDEN,
    "codebook_dim": HIDDEN,
    "encdec_channels": 1,
    "encdec_n_filters": FILTERS,
    "encdec_n_residual_layers": RESIDUALS,
    "encdec_ratios": list(RATIOS),
    "encdec_activation": "Snake",
    "encdec_norm": "weight_norm",
    "encdec_kernel_size": 7,
    "encdec_residual_kernel_size": 7,
    "encdec_last_kernel_size": 7,
    "encdec_dilation_base": 2,
    "encdec_causal": False,
    "encdec_pad_mode": "reflect",
    "encdec_true_skip": False,
    "encdec_compress": 2,
    "encdec_lstm": 2,
    "decoder_trim_right_ratio": 1.0,
    "decoder_final_activation": None,
    "decoder_final_activation_params": None,
    "quantizer_n_q": STREAMS,
    "quantizer_bins": CODES,
    "quantizer_decay": 0.99,
    "quantizer_target_bandwidth": [0.5, 1, 2, 4],
    "quantizer_dropout": True,
}


def write(directory: Path, seed: int, codebook_dim: int = HIDDEN, codes: int = CODES) -> Tensors:
    """config.yaml and the weights, in the folder of an experiment; returns the weights."""
    folder = directory / "exp" / "codec_train_dac"
    folder.mkdir(parents=True)
    generator = GENERATOR | {"codebook_dim": codebook_dim, "quantizer_bins": codes}
    training: dict[str, Any] = {
        "codec": "dac",
        "codec_conf": {"sampling_rate": 16000, "generator_params": generator},
        "optim": "adamw",
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(training))
    tensors = _weights(torch.Generator().manual_seed(seed), codebook_dim, codes)
    torch.save(tensors, folder / "360epoch.pth")
    (directory / "meta.yaml").write_text("espnet: '202402'\n")
    return tensors


def encode(tensors: Tensors, samples: torch.Tensor) -> torch.Tensor:
    """Samples [320 n] to codes [streams, n]."""
    weights = _generator(tensors)
    model = "encoder.model"
    signal = _conv(weights, f"{model}.0", samples[None, None])
    number = 1
    for ratio in reversed(RATIOS):
        signal, number = _residuals(weights, model, number, signal)
        signal = _snake(weights, f"{model}.{number}", signal)
        signal = _conv(weights, f"{model}.{number + 1}", signal, stride=ratio)
        number += 2
    through = _lstm(weights, f"{model}.{number}.lstm", signal.permute(2, 0, 1))
    signal = through.permute(1, 2, 0) + signal
    signal = _snake(weights, f"{model}.{number + 1}", signal)
    left = _conv(weights, f"{model}.{number + 2}", signal)[0].T
    codes = []
    for stream in range(STREAMS):
        layer = f"quantizer.vq.layers.{stream}"
        keys = weights[f"{layer}._codebook.embed"]
        found = (_projected(weights, f"{layer}.project_in", left)[:, None] - keys).norm(dim=2)
        codes.append(found.argmin(dim=1))
        left = left - _projected(weights, f"{layer}.project_out", keys[codes[-1]])
    return torch.stack(codes)


def decode(tensors: Tensors, codes: torch.Tensor) -> torch.Tensor:
    """Codes [batch, streams, n] to audio [batch, 320 n], not clipped."""
    weights = _generator(tensors)
    quantized = []
    for stream in range(codes.shape[1]):
        layer = f"quantizer.vq.layers.{stream}"
        vectors = weights[f"{layer}._codebook.embed"][codes[:, stream]]
        quantized.append(_projected(weights, f"{layer}.project_out", vectors))
    signal = torch.stack(quantized).sum(0).transpose(1, 2)

    model = "decoder.model"
    signal = _conv(weights, f"{model}.0", signal)
    signal = _lstm(weights, f"{model}.1.lstm", signal.permute(2, 0, 1)).permute(1, 2, 0) + signal
    number = 2
    for ratio in RATIOS:
        signal = _snake(weights, f"{model}.{number}", signal)
        signal = _upsample(weights, f"{model}.{number + 1}", signal, ratio)
        signal, number = _residuals(weights, model, number + 2, signal)
    signal = _snake(weights, f"{model}.{number}", signal)
    return _conv(weights, f"{model}.{number + 1}", signal)[:, 0]


def _generator(tensors: Tensors) -> Tensors:
    prefix = "codec.generator."
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _projected(weights: Tensors, name: str, vectors: torch.Tensor) -> torch.Tensor:
    """Unless codebooks are as wide as what they stand for."""
    if f"{name}.weight" not in weights:
        return vectors
    return vectors @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _residuals(
    weights: Tensors, model: str, number: int, signal: torch.Tensor
) -> tuple[torch.Tensor, int]:
    for index in range(RESIDUALS):
        name = f"{model}.{number}"
        branch = _snake(weights, f"{name}.block.0", signal)
        branch = _conv(weights, f"{name}.block.1", branch, 2**index)
        branch = _snake(weights, f"{name}.block.2", branch)
        branch = _conv(weights, f"{name}.block.3", branch)
        signal = _conv(weights, f"{name}.shortcut", signal) + branch
        number += 1
    return signal, number


def _snake(weights: Tensors, name: str, signal: torch.Tensor) -> torch.Tensor:
    slope = weights.get(f"{name}.alpha", torch.ones(1, 1, 1))
    return signal + torch.sin(slope * signal) ** 2 / slope


def _weight(weights: Tensors, name: str) -> torch.Tensor:
    direction = weights[f"{name}.weight_v"]
    norm = direction.flatten(1).norm(dim=1)[:, None, None]
    return direction / norm * weights[f"{name}.weight_g"]


def _conv(
    weights: Tensors, name: str, signal: torch.Tensor, dilation: int = 1, stride: int = 1
) -> torch.Tensor:
    weight = _weight(weights, f"{name}.conv.conv")
    pad = dilation * (weight.shape[2] - 1) + 1 - stride
    left, right = pad - pad // 2, pad // 2
    length = signal.shape[2]
    missing = max(0, left + 1 - length)
    mirrored = functional.pad(functional.pad(signal, (0, missing)), (left, right), mode="reflect")
    mirrored = mirrored[..., : length + pad]
    bias = weights[f"{name}.conv.conv.bias"]
    return functional.conv1d(mirrored, weight, bias, dilation=dilation, stride=stride)


def _upsample(weights: Tensors, name: str, signal: torch.Tensor, ratio: int) -> torch.Tensor:
    name = f"{name}.convtr.convtr"
    wide = functional.conv_transpose1d(
        signal, _weight(weights, name), weights[f"{name}.bias"], stride=ratio
    )
    return wide[..., ratio - ratio // 2 : wide.shape[2] - ratio // 2]


def _lstm(weights: Tensors, name: str, inputs: torch.Tensor) -> torch.Tensor:
    """Step by step: [n, batch, width]."""
    for layer in range(2):
        hidden = cell = torch.zeros_like(inputs[0])
        outputs = []
        for step in inputs:
            gates = functional.linear(
                step, weights[f"{name}.weight_ih_l{layer}"], weights[f"{name}.bias_ih_l{layer}"]
            ) + functional.linear(
                hidden, weights[f"{name}.weight_hh_l{layer}"], weights[f"{name}.bias_hh_l{layer}"]
            )
            let_in, keep, new, let_out = gates.chunk(4, dim=1)
            cell = keep.sigmoid() * cell + let_in.sigmoid() * new.tanh()
            hidden = let_out.sigmoid() * cell.tanh()
            outputs.append(hidden)
        inputs = torch.stack(outputs)
    return inputs


def _weights(random: torch.Generator, codebook_dim: int, codes: int) -> Tensors:
    tensors: Tensors = {}

    def normal(*shape: int, scale: float) -> torch.Tensor:
        return torch.randn(*shape, generator=random) * scale

    def convolution(name: str, shape: tuple[int, int, int], biases: int, fan_in: float) -> None:
        tensors[f"{name}.weight_v"] = normal(*shape, scale=3.0)
        norm = tensors[f"{name}.weight_v"].flatten(1).norm(dim=1)[:, None, None]
        tensors[f"{name}.weight_g"] = norm / 3.0 * (2 * fan_in) ** -0.5
        tensors[f"{name}.bias"] = normal(biases, scale=0.02)

    def conv(name: str, inputs: int, outputs: int, kernel: int) -> None:
        convolution(f"{name}.conv.conv", (outputs, inputs, kernel), outputs, inputs * kernel)

    generator = "codec.generator"
    for index in range(STREAMS):
        layer = f"{generator}.quantizer.vq.layers.{index}"
        embed = normal(codes, codebook_dim, scale=0.35)
        tensors[f"{layer}._codebook.embed"] = embed
        tensors[f"{layer}._codebook.embed_avg"] = embed.clone()
        tensors[f"{layer}._codebook.cluster_size"] = torch.ones(codes)
        tensors[f"{layer}._codebook.inited"] = torch.ones(1)
        if codebook_dim != HIDDEN:
            tensors[f"{layer}.project_in.weight"] = normal(codebook_dim, HIDDEN, scale=0.3)
            tensors[f"{layer}.project_in.bias"] = normal(codebook_dim, scale=0.1)
            tensors[f"{layer}.project_out.weight"] = normal(HIDDEN, codebook_dim, scale=0.3)
            tensors[f"{layer}.project_out.bias"] = normal(HIDDEN, scale=0.1)
    tensors["codec.discriminator.scale.0.weight"] = normal(4, 4, scale=1.0)

    def lstm(name: str, width: int) -> None:
        for depth in range(2):
            for kind in ("ih", "hh"):
                tensors[f"{name}.weight_{kind}_l{depth}"] = normal(
                    4 * width, width, scale=width**-0.5
                )
                tensors[f"{name}.bias_{kind}_l{depth}"] = normal(4 * width, scale=0.1)
            tensors[f"{name}.bias_ih_l{depth}"][width : 2 * width] = 4.0  # long memory

    def residuals(model: str, number: int, width: int) -> int:
        for _ in range(RESIDUALS):
            conv(f"{model}.{number}.block.1", width, width // 2, 7)
            conv(f"{model}.{number}.block.3", width // 2, width, 1)
            conv(f"{model}.{number}.shortcut", width, width, 1)
            number += 1
        return number

    model = f"{generator}.decoder.model"
    width = FILTERS * 2 ** len(RATIOS)
    conv(f"{model}.0", HIDDEN, width, 7)
    lstm(f"{model}.1.lstm", width)
    number = 2
    for ratio in RATIOS:
        convolution(
            f"{model}.{number + 1}.convtr.convtr", (width, width // 2, 2 * ratio), width // 2,
            2 * width,
        )  # fmt: skip
        width //= 2
        number = residuals(model, number + 2, width)
    conv(f"{model}.{number + 1}", FILTERS, 1, 7)

    model = f"{generator}.encoder.model"
    conv(f"{model}.0", 1, FILTERS, 7)
    tensors[f"{model}.0.conv.conv.weight_g"] *= 30.0  # speech is quiet
    number = 1
    for ratio in reversed(RATIOS):
        number = residuals(model, number, width)
        conv(f"{model}.{number + 1}", width, 2 * width, 2 * ratio)
        width *= 2
        number += 2
    lstm(f"{model}.{number}.lstm", width)
    conv(f"{model}.{number + 2}", width, HIDDEN, 7)
    return tensors
