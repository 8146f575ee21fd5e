"""Small random codecs and encoders in the layout of official checkpoints.

Kernels, strides and dilations are the real ones, so hop length, sample rate and context are those
of production; only the widths are small. The weights are random but scaled so that codes can be
heard: different codes give different waves, neither silent nor clipped.
"""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils.parametrize import is_parametrized
from transformers import (
    DacConfig,
    DacModel,
    EncodecConfig,
    EncodecModel,
    HubertConfig,
    HubertModel,
    MimiConfig,
    MimiModel,
    XcodecConfig,
    XcodecModel,
)
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
)
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import Qwen3OmniMoeAudioEncoder
from transformers.utils import logging

from vocoder_service.log_mel import BAGPIPER_FEATURES, SETTINGS_FILE, LogMel
from vocoder_service.ssl_units import CENTROIDS, CENTROIDS_FILE, QUANTIZER_FILE

_RATIOS = [8, 5, 4, 2]
_FRAME_RATE = 50
_PEAK = 0.5


def make_tiny_xcodec(
    directory: str | Path, seed: int, num_codebooks: int = 8, codebook_size: int = 1024
) -> None:
    """Write an Xcodec of 16 kHz and 320 samples per frame.

    Raises:
        ValueError: ``codebook_size`` is not a power of two.
    """
    config = XcodecConfig(
        # kbit/s. XcodecModel rounds the last bandwidth down to whole codebooks; half a codebook
        # more keeps a rounding error from costing one.
        target_bandwidths=[(num_codebooks + 0.5) * _FRAME_RATE * _bits(codebook_size) / 1000],
        codebook_size=codebook_size,
        acoustic_model_config=DacConfig(
            encoder_hidden_size=2,
            downsampling_ratios=_RATIOS,
            upsampling_ratios=_RATIOS,
            decoder_hidden_size=16,
            hidden_size=32,
        ),
        semantic_model_config=_hubert(layers=1),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = XcodecModel(config).eval()
        for name in ("acoustic_encoder", "encoder_semantic", "fc", "fc2", "acoustic_decoder"):
            _randomise(getattr(model, name))
        for quantizer in model.quantizer.quantizers:
            quantizer.codebook.embed.normal_()  # zero in a new model: all codes sound the same
        _make_audible(model.decode, model.acoustic_decoder.conv2, num_codebooks, codebook_size)
    _save(model, directory)


def make_tiny_dac(
    directory: str | Path,
    seed: int,
    num_codebooks: int = 12,
    codebook_size: int = 1024,
    sample_rate: int = 16000,
    ratios: Sequence[int] = _RATIOS,
) -> None:
    """Write a DAC.

    Args:
        ratios: of its decoder, whose product is the samples per frame: those of the 16 and 24 kHz
            checkpoints, or (8, 8, 4, 2), those of 44.1 kHz.

    Raises:
        ValueError: ``codebook_size`` is not a power of two.
    """
    _bits(codebook_size)
    config = DacConfig(
        encoder_hidden_size=2,
        downsampling_ratios=list(ratios[::-1]),
        decoder_hidden_size=16,
        n_codebooks=num_codebooks,
        codebook_size=codebook_size,
        sampling_rate=sample_rate,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = DacModel(config).eval()
        _randomise(model)
        for quantizer in model.quantizer.quantizers:
            quantizer.codebook.weight.data.normal_()
        _make_audible(model.decode, model.decoder.conv2, num_codebooks, codebook_size)
    _save(model, directory)


def make_tiny_encodec(
    directory: str | Path,
    seed: int,
    num_codebooks: int = 4,
    codebook_size: int = 1024,
    causal: bool = True,
) -> None:
    """Write an EnCodec of 24 kHz and 320 samples per frame.

    Raises:
        ValueError: ``codebook_size`` is not a power of two.
    """
    # 24 kHz / 320. EncodecModel, too, rounds the last bandwidth down to whole codebooks.
    bits_per_second = (num_codebooks + 0.5) * 75 * _bits(codebook_size)
    config = EncodecConfig(
        target_bandwidths=[bits_per_second / 1000],
        codebook_size=codebook_size,
        hidden_size=16,
        num_filters=4,
        upsampling_ratios=_RATIOS,
        use_causal_conv=causal,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = EncodecModel(config).eval()
        _randomise(model)
        _make_varied(model.encoder, model.encoder.layers[-1].conv)
        _lengthen_memory(model.decoder.layers[1].lstm)
        for layer in model.quantizer.layers:
            layer.codebook.embed.normal_()

        def decode(audio_codes: torch.Tensor) -> None:
            model.decode(audio_codes[None], audio_scales=[None])

        _make_audible(decode, model.decoder.layers[-1].conv, num_codebooks, codebook_size)
    _save(model, directory)


def make_tiny_mimi(
    directory: str | Path, seed: int, num_codebooks: int = 32, codebook_size: int = 2048
) -> None:
    """Write a Mimi of 24 kHz and 1920 samples per frame, one of its codebooks semantic.

    Raises:
        ValueError: ``codebook_size`` is not a power of two.
    """
    _bits(codebook_size)
    config = MimiConfig(
        hidden_size=32,
        num_filters=2,
        codebook_size=codebook_size,
        codebook_dim=16,
        vector_quantization_hidden_dimension=16,
        num_quantizers=num_codebooks,
        upsample_groups=32,
        num_hidden_layers=2,
        intermediate_size=64,
        num_attention_heads=4,
        num_key_value_heads=4,
        layer_scale_initial_scale=1.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = MimiModel(config).eval()
        _randomise(model)
        _make_varied(model.encoder, model.encoder.layers[-1].conv)
        for name, buffer in model.quantizer.named_buffers():
            if name.endswith("embed_sum"):
                buffer.normal_()
        _make_audible(model.decode, model.decoder.layers[-1].conv, num_codebooks, codebook_size)
    _save(model, directory)


def make_tiny_ssl(directory: str | Path, seed: int, units: int) -> None:
    """Write a HuBERT of 16 kHz and 320 samples per frame, with centroids for its last layer."""
    path = Path(directory)
    config = _hubert(layers=2)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = HubertModel(config).eval()
        with torch.no_grad():
            features = model(torch.randn(1, 2 * 16000) / 10).last_hidden_state[0]
        spread = torch.randn(units, config.hidden_size)
        centroids = features.mean(dim=0) + features.std(dim=0) * spread
    _save(model, path)
    save_file({CENTROIDS: centroids.contiguous()}, path / CENTROIDS_FILE)
    quantizer = {"layer": config.num_hidden_layers, "normalise": False}
    (path / QUANTIZER_FILE).write_text(json.dumps(quantizer) + "\n")


def make_tiny_audio_tower(directory: str | Path, seed: int, width: int) -> None:
    """Write an encoder of continuous audio, and the layer from it to a backbone of ``width``.

    Its rows of noise have mean 0 and variance 1/4.
    """
    from vocoder_service.audio_tower import ADAPTOR_FILE, AudioTower

    path = Path(directory)
    config = Qwen3OmniMoeAudioEncoderConfig(
        d_model=32,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=48,
        output_dim=24,
        downsample_hidden_size=8,
        n_window=50,
        n_window_infer=800,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder: Any = Qwen3OmniMoeAudioEncoder(config)
        adaptor = nn.Linear(config.output_dim, width)
        for part in (encoder, adaptor):
            for name, weight in part.named_parameters():
                if weight.dim() > 1:
                    nn.init.normal_(weight, std=weight[0].numel() ** -0.5)
                elif name.endswith("bias"):
                    nn.init.normal_(weight, std=0.1)
        tower = AudioTower(LogMel(BAGPIPER_FEATURES), encoder, adaptor)
        rows = torch.from_numpy(tower.encode((torch.randn(2 * 16000) / 10).numpy()))
    spread, mean = torch.std_mean(rows, dim=0)
    adaptor.weight.data /= 2 * spread[:, None]
    adaptor.bias.data.sub_(mean).div_(2 * spread)
    _save(encoder, path)
    save_file(dict(adaptor.state_dict()), path / ADAPTOR_FILE)
    (path / SETTINGS_FILE).write_text(json.dumps(BAGPIPER_FEATURES, indent=1) + "\n")


def _hubert(layers: int) -> HubertConfig:
    return HubertConfig(
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        conv_dim=[8] * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )


def _bits(codebook_size: int) -> int:
    bits = codebook_size.bit_length() - 1
    if codebook_size != 1 << bits:
        raise ValueError(f"the codebook size must be a power of two, not {codebook_size}")
    return bits


@torch.no_grad()
def _randomise(part: nn.Module) -> None:
    """Weights of variance 1 / (2 fan-in): half the usual, since residual sums add up.

    A signal then comes through without growing, and rounding errors stay near 1e-6 of it.
    """
    for module in part.modules():
        if isinstance(module, nn.ConvTranspose1d):
            fan_in = module.in_channels // module.groups * module.kernel_size[0] / module.stride[0]
        elif isinstance(module, nn.Conv1d | nn.Linear):
            fan_in = module.weight[0].numel()
        else:
            continue
        weight = torch.empty_like(module.weight)
        _set_weight(module, weight.normal_(std=1 / math.sqrt(2 * fan_in)))
        if module.bias is not None:
            module.bias.normal_(std=0.1)


@torch.no_grad()
def _make_varied(encoder: nn.Module, last: nn.Conv1d) -> None:
    """Scale the encoder's last layer so that each value of noise has mean 0, variance 1."""
    spread, mean = torch.std_mean(encoder(torch.randn(1, 1, 16000) / 3), dim=(0, 2))
    _set_weight(last, last.weight / spread[:, None, None])
    cast(nn.Parameter, last.bias).sub_(mean).div_(spread)


@torch.no_grad()
def _lengthen_memory(lstm: nn.LSTM) -> None:
    """Have a new LSTM, which forgets half of what it knows at every step, forget 2 %."""
    width = lstm.hidden_size
    for layer in range(lstm.num_layers):
        getattr(lstm, f"bias_ih_l{layer}")[width : 2 * width] = 4.0


def _set_weight(module: Any, weight: torch.Tensor) -> None:
    if is_parametrized(module):  # by its norm: in place, nothing would change
        module.weight = weight
    else:
        module.weight.copy_(weight)


@torch.no_grad()
def _make_audible(
    decode: Callable[..., Any], last: nn.Conv1d, num_codebooks: int, codebook_size: int
) -> None:
    """Scale the decoder's last layer so that two seconds of random codes have mean 0, peak 0.5.

    DAC's final tanh is nearly linear up to there.

    Args:
        decode: takes ``audio_codes`` [1, num_codebooks, frames].
    """
    codes = torch.randint(codebook_size, (1, num_codebooks, 2 * _FRAME_RATE))
    outputs: list[torch.Tensor] = []
    with last.register_forward_hook(lambda _module, _args, output: outputs.append(output)):
        decode(audio_codes=codes)
    (wave,) = outputs
    gain = _PEAK / (wave - wave.mean()).abs().max()
    _set_weight(last, last.weight * gain)
    cast(nn.Parameter, last.bias).sub_(wave.mean()).mul_(gain)


def _save(model: Any, directory: str | Path) -> None:
    """Without the progress bar of transformers, which would be over before it can be read."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model.save_pretrained(directory)
    finally:
        if shown:
            logging.enable_progress_bar()
