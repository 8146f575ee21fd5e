"""ESPnet's DAC for tests: a small checkpoint as ESPnet writes it, and a decoder of its own.

The decoder is written from the description of the model, in functions over the checkpoint's
tensors, and shares nothing with the one that is tested.
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


def write(directory: Path, seed: int, codebook_dim: int = HIDDEN) -> Tensors:
    """config.yaml and the weights, in the folder of an experiment; returns the weights."""
    folder = directory / "exp" / "codec_train_dac"
    folder.mkdir(parents=True)
    generator = GENERATOR | {"codebook_dim": codebook_dim}
    training: dict[str, Any] = {
        "codec": "dac",
        "codec_conf": {"sampling_rate": 16000, "generator_params": generator},
        "optim": "adamw",
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(training))
    tensors = _weights(torch.Generator().manual_seed(seed), codebook_dim)
    torch.save(tensors, folder / "360epoch.pth")
    (directory / "meta.yaml").write_text("espnet: '202402'\n")
    return tensors


def decode(tensors: Tensors, codes: torch.Tensor) -> torch.Tensor:
    """Codes [batch, streams, n] to audio [batch, 320 n], not clipped."""
    weights = {
        name.removeprefix("codec.generator."): value
        for name, value in tensors.items()
        if name.startswith("codec.generator.")
    }
    quantized = []
    for stream in range(codes.shape[1]):
        layer = f"quantizer.vq.layers.{stream}"
        vectors = weights[f"{layer}._codebook.embed"][codes[:, stream]]
        if f"{layer}.project_out.weight" in weights:
            vectors = functional.linear(
                vectors,
                weights[f"{layer}.project_out.weight"],
                weights[f"{layer}.project_out.bias"],
            )
        quantized.append(vectors)
    signal = torch.stack(quantized).sum(0).transpose(1, 2)

    model = "decoder.model"
    signal = _conv(weights, f"{model}.0", signal)
    signal = _lstm(weights, f"{model}.1.lstm", signal.permute(2, 0, 1)).permute(1, 2, 0) + signal
    number = 2
    for ratio in RATIOS:
        signal = _upsample(weights, f"{model}.{number + 1}", _snake(signal), ratio)
        number += 2
        for index in range(RESIDUALS):
            branch = _conv(weights, f"{model}.{number}.block.1", _snake(signal), 2**index)
            branch = _conv(weights, f"{model}.{number}.block.3", _snake(branch))
            signal = _conv(weights, f"{model}.{number}.shortcut", signal) + branch
            number += 1
    return _conv(weights, f"{model}.{number + 1}", _snake(signal))[:, 0]


def _snake(signal: torch.Tensor) -> torch.Tensor:
    return signal + torch.sin(signal) ** 2


def _weight(weights: Tensors, name: str) -> torch.Tensor:
    direction = weights[f"{name}.weight_v"]
    norm = direction.flatten(1).norm(dim=1)[:, None, None]
    return direction / norm * weights[f"{name}.weight_g"]


def _conv(weights: Tensors, name: str, signal: torch.Tensor, dilation: int = 1) -> torch.Tensor:
    weight = _weight(weights, f"{name}.conv.conv")
    pad = dilation * (weight.shape[2] - 1) // 2
    length = signal.shape[2]
    missing = max(0, pad + 1 - length)
    mirrored = functional.pad(functional.pad(signal, (0, missing)), (pad, pad), mode="reflect")
    mirrored = mirrored[..., : length + 2 * pad]
    return functional.conv1d(mirrored, weight, weights[f"{name}.conv.conv.bias"], dilation=dilation)


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


def _weights(random: torch.Generator, codebook_dim: int) -> Tensors:
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
        embed = normal(CODES, codebook_dim, scale=0.35)
        tensors[f"{layer}._codebook.embed"] = embed
        tensors[f"{layer}._codebook.embed_avg"] = embed.clone()
        tensors[f"{layer}._codebook.cluster_size"] = torch.ones(CODES)
        tensors[f"{layer}._codebook.inited"] = torch.ones(1)
        if codebook_dim != HIDDEN:
            tensors[f"{layer}.project_in.weight"] = normal(codebook_dim, HIDDEN, scale=0.3)
            tensors[f"{layer}.project_in.bias"] = normal(codebook_dim, scale=0.1)
            tensors[f"{layer}.project_out.weight"] = normal(HIDDEN, codebook_dim, scale=0.3)
            tensors[f"{layer}.project_out.bias"] = normal(HIDDEN, scale=0.1)
    conv(f"{generator}.encoder.model.0", 1, FILTERS, 7)
    tensors["codec.discriminator.scale.0.weight"] = normal(4, 4, scale=1.0)

    model = f"{generator}.decoder.model"
    width = FILTERS * 2 ** len(RATIOS)
    conv(f"{model}.0", HIDDEN, width, 7)
    for depth in range(2):
        for kind in ("ih", "hh"):
            name = f"{model}.1.lstm.{{}}_{kind}_l{depth}"
            tensors[name.format("weight")] = normal(4 * width, width, scale=width**-0.5)
            tensors[name.format("bias")] = normal(4 * width, scale=0.1)
        tensors[f"{model}.1.lstm.bias_ih_l{depth}"][width : 2 * width] = 4.0  # long memory
    number = 2
    for ratio in RATIOS:
        convolution(
            f"{model}.{number + 1}.convtr.convtr", (width, width // 2, 2 * ratio), width // 2,
            2 * width,
        )  # fmt: skip
        width //= 2
        number += 2
        for _ in range(RESIDUALS):
            conv(f"{model}.{number}.block.1", width, width // 2, 7)
            conv(f"{model}.{number}.block.3", width // 2, width, 1)
            conv(f"{model}.{number}.shortcut", width, width, 1)
            number += 1
    conv(f"{model}.{number + 1}", FILTERS, 1, 7)
    return tensors
