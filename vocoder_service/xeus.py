"""XEUS, ESPnet's self-supervised speech encoder, from the checkpoint as ESPnet publishes it.

Convolutions make frames of samples, one more convolution tells where they are, and E-Branchformer's
blocks make features of them. ESPnet itself is not needed.
"""

from pathlib import Path
from typing import Any, Self

import torch
import yaml
from torch import nn
from torch.nn import functional

from vocoder_service.checkpoint import Weights, without_weight_norm
from vocoder_service.e_branchformer import Activation, Block, BlockSizes

CONFIG_FILE = "config.yaml"
# Of ESPnet's classes, for what a configuration leaves out.
_SHAPES = [(512, 10, 5), *[(512, 3, 2)] * 4, *[(512, 2, 2)] * 2]
_FRONTEND = {
    "bias": False,
    "conv_mode": "standard",
    "norm_mode": "layer_norm",
    "normalize_audio": False,
    "normalize_output": False,
    "shapes": _SHAPES,
}
_ENCODER = {
    "output_size": 256,
    "attention_heads": 4,
    "attention_layer_type": "rel_selfattn",
    "pos_enc_layer_type": "rel_pos",
    "cgmlp_linear_units": 2048,
    "cgmlp_conv_kernel": 31,
    "use_linear_after_conv": False,
    "gate_activation": "identity",
    "num_blocks": 12,
    "input_layer": "conv2d",
    "use_ffn": False,
    "macaron_ffn": False,
    "ffn_activation_type": "swish",
    "linear_units": 2048,
    "positionwise_layer_type": "linear",
    "merge_conv_kernel": 3,
    "qk_norm": False,
}
_ACTIVATIONS: dict[str, Activation] = {
    "swish": functional.silu,
    "relu": functional.relu,
    "gelu": functional.gelu,
}
_PLACE_KERNEL, _PLACE_GROUPS = 128, 16
_READ = ("frontend.", "preencoder.", "encoder.")  # the rest belongs to the training


class Xeus:
    """Samples in, features of a layer out.

    Attributes:
        width: of the features.
        layers: of which features can be had, from 1 on.
        hop_length: samples from one frame to the next.
        reach: samples that one frame reads.
    """

    def __init__(self, training: dict[str, Any], weights: Weights) -> None:
        """
        Args:
            training: content of ``config.yaml``.

        Raises:
            ValueError: a model of a form that is not known here.
            RuntimeError: the weights do not fit the configuration.
        """
        frontend = _FRONTEND | (training.get("frontend_conf") or {})
        encoder = _ENCODER | (training.get("encoder_conf") or {})
        _check_form(training, frontend, encoder)
        self._frontend = weights.load(_Frontend(frontend), "frontend.")
        self._normalise = bool(frontend["normalize_audio"])
        self.width, self.layers = int(encoder["output_size"]), int(encoder["num_blocks"])
        channels = frontend["shapes"][-1][0]
        self._projection = None
        if training.get("preencoder") == "linear":
            channels = training["preencoder_conf"]["output_size"]
            projection = nn.Linear(frontend["shapes"][-1][0], channels)
            self._projection = weights.load(projection, "preencoder.linear_out.")
        self._entry = _entry(encoder, channels, weights)
        sizes = BlockSizes(*(encoder[name] for name in BlockSizes._fields))
        self._blocks = [
            weights.load(
                Block(
                    sizes,
                    _ACTIVATIONS[encoder["ffn_activation_type"]],
                    before=encoder["macaron_ffn"],
                    after=encoder["use_ffn"],
                ),
                f"encoder.encoders.{index}.",
            )
            for index in range(self.layers)
        ]
        after = nn.LayerNorm(self.width, eps=1e-12)
        self._after = weights.load(after, "encoder.after_norm.")
        for prefix in _READ:
            weights.check_all_taken(prefix)
        self.hop_length, self.reach = 1, 1
        for _, kernel, stride in frontend["shapes"]:
            self.reach += (kernel - 1) * self.hop_length
            self.hop_length *= stride

    @classmethod
    def load(cls, directory: Path, device: str = "cpu") -> Self:
        """Of ``config.yaml`` and the weights beside it, in float32.

        Raises:
            FileNotFoundError: one of them is missing, or there are several checkpoints.
            ValueError: a model of a form that is not known here.
            RuntimeError: the weights do not fit the configuration.
        """
        files = sorted(directory.glob("*.pth"))
        if len(files) != 1:
            raise FileNotFoundError(f"{directory} must hold one .pth file, not {len(files)}")
        training = yaml.safe_load((directory / CONFIG_FILE).read_text())
        tensors = torch.load(files[0], map_location="cpu", weights_only=True, mmap=True)
        read = {name: tensor for name, tensor in tensors.items() if name.startswith(_READ)}
        return cls(training, Weights(without_weight_norm(read), device, torch.float32))

    @torch.inference_mode()
    def features(self, wave: torch.Tensor, layer: int) -> torch.Tensor:
        """Those of ``layer``, [frames, width], of samples [n >= reach]; the last layer's are
        normalised once more, as ESPnet does it."""
        wave = wave[None]
        if self._normalise:
            wave = functional.layer_norm(wave, wave.shape)
        signal = self._frontend(wave)
        if self._projection is not None:
            signal = self._projection(signal)
        for step in self._entry:
            signal = step(signal)
        for block in self._blocks[:layer]:
            signal = block(signal)
        if layer == self.layers:
            signal = self._after(signal)
        return signal[0]


class _Downsampling(nn.Module):
    def __init__(
        self, inputs: int, channels: int, kernel: int, stride: int, bias: bool, norm: str | None
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, channels, kernel, stride, bias=bias)
        self.layer_norm: nn.Module | None = None
        if norm == "layer_norm":
            self.layer_norm = nn.LayerNorm(channels)
        elif norm == "group_norm":
            self.layer_norm = nn.GroupNorm(channels, channels)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        signal = self.conv(signal)
        if isinstance(self.layer_norm, nn.LayerNorm):
            signal = self.layer_norm(signal.transpose(1, 2)).transpose(1, 2)
        elif self.layer_norm is not None:
            signal = self.layer_norm(signal)
        return functional.gelu(signal)


class _Frontend(nn.Module):
    """Samples [batch, n] to frames [batch, frames, channels]."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.layers = nn.Sequential()
        inputs, mode = 1, config["norm_mode"]
        for index, (channels, kernel, stride) in enumerate(config["shapes"]):
            norm = mode if mode == "layer_norm" or index == 0 else None
            self.layers.append(
                _Downsampling(inputs, channels, kernel, stride, config["bias"], norm)
            )
            inputs = channels
        self.final_norm = nn.LayerNorm(inputs) if config["normalize_output"] else nn.Identity()

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.final_norm(self.layers(wave.unsqueeze(1)).transpose(1, 2))
        return made


class _Places(nn.Module):
    """A wide convolution whose output, alone, goes on: what is where, in one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        padding = _PLACE_KERNEL // 2
        conv = nn.Conv1d(width, width, _PLACE_KERNEL, padding=padding, groups=_PLACE_GROUPS)
        self.convs = nn.ModuleList([conv])

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.convs[0](signal.transpose(1, 2))
        return functional.gelu(made[..., :-1]).transpose(1, 2)  # the kernel is even


def _entry(encoder: dict[str, Any], inputs: int, weights: Weights) -> list[nn.Module]:
    """What is between the frames and the first block."""
    width, prefix = encoder["output_size"], "encoder.embed."
    if encoder["input_layer"] == "linear":
        return [
            weights.load(nn.Linear(inputs, width), f"{prefix}0."),
            weights.load(nn.LayerNorm(width), f"{prefix}1."),
            weights.load(_Places(width), f"{prefix}3."),
        ]
    if inputs != width:
        raise ValueError(f"{inputs} channels do not fit an encoder of {width}")
    return [weights.load(_Places(width), f"{prefix}0.")]


def _check_form(
    training: dict[str, Any], frontend: dict[str, Any], encoder: dict[str, Any]
) -> None:
    served: dict[str, tuple[Any, list[Any]]] = {
        "frontend": (training.get("frontend"), ["cnn"]),
        "normalize": (training.get("normalize"), [None]),
        "preencoder": (training.get("preencoder"), [None, "linear"]),
        "encoder": (training.get("encoder"), ["e_branchformer"]),
        "conv_mode": (frontend["conv_mode"], ["standard"]),
        "norm_mode": (frontend["norm_mode"], ["layer_norm", "group_norm"]),
        "attention_layer_type": (encoder["attention_layer_type"], ["selfattn"]),
        "pos_enc_layer_type": (encoder["pos_enc_layer_type"], ["conv"]),
        "use_linear_after_conv": (encoder["use_linear_after_conv"], [False]),
        "gate_activation": (encoder["gate_activation"], ["identity"]),
        "input_layer": (encoder["input_layer"], [None, "linear"]),
        "ffn_activation_type": (encoder["ffn_activation_type"], list(_ACTIVATIONS)),
        "positionwise_layer_type": (encoder["positionwise_layer_type"], ["linear"]),
        "qk_norm": (encoder["qk_norm"], [False]),
    }
    for name, (value, known) in served.items():
        if value not in known:
            raise ValueError(f"an SSL model of ESPnet's with {name} {value!r} cannot be read")
