"""Random checkpoints with a family's true vocabulary and a small body.

They are for tests and benchmarks: everything around the weights is as large and as
awkward as in the real family, and a request takes a second.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

from engine_adapter.checkpoint import CONFIG_FILE, STREAM_EMBEDDING, TOKENIZER_FILE, WEIGHTS_FILE
from engine_adapter.families import FAMILIES
from engine_adapter.folders import AUDIO_ENCODER_FOLDER, CODEC_FOLDER, SSL_FOLDER
from engine_adapter.spec import StreamSpec

MAX_POSITION_EMBEDDINGS = 4096


BACKBONES = {
    "qwen3": "Qwen3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
}
CODECS = ("dac", "encodec", "mimi", "xcodec")


@dataclass(frozen=True)
class Recipe:
    """What a spec does not say of a tiny checkpoint.

    The biases are added to logits. Those of the served families were chosen by measurement, so
    that a request at the family's default sampling writes 30 to 80 frames and 10 to 40 text ids
    on average.

    Attributes:
        backbone: its Hugging Face ``model_type``, a key of ``BACKBONES``.
        codec: the codec's kind, one of ``CODECS``.
        end_bias: of the ids that end text or audio.
        ascii_bias: of the printable ASCII ids, so that text is mostly readable
            although the tokenizer knows 256 ids only.
    """

    backbone: str = "qwen3"
    codec: str = "dac"
    end_bias: float = 2.3
    ascii_bias: float = 1.0


_RECIPES = {
    "bagpiper": Recipe("qwen3", "xcodec", 2.35, 1.7),
    "opuslm": Recipe("olmo2", "dac", 3.8, 2.7),
    "opuslm-dialogue": Recipe("llama", "dac", 3.6, 2.6),
    "demo": Recipe("qwen3", "dac", 2.3, 1.0),
}


def make_tiny(
    family: str, directory: str | Path, seed: int = 0, hidden: int = 64, layers: int = 2
) -> Path:
    """Writes a complete model directory of a served family; see :func:`make_tiny_of`.

    Args:
        family: a key of ``FAMILIES``.

    Raises:
        ValueError: no such family, or ``hidden`` is not a positive multiple of 64.
    """
    if family not in _RECIPES:
        raise ValueError(f"no family {family!r}; there are {', '.join(sorted(_RECIPES))}")
    return make_tiny_of(FAMILIES[family], _RECIPES[family], directory, seed, hidden, layers)


def make_tiny_of(
    spec: StreamSpec,
    recipe: Recipe,
    directory: str | Path,
    seed: int = 0,
    hidden: int = 64,
    layers: int = 2,
) -> Path:
    """Writes a complete model directory with random float32 weights.

    Args:
        spec: of any family whose tokenizer may be one of bytes.
        directory: created if it does not exist; files in it are overwritten.
        seed: of the weights and the codec. The same arguments give the same bytes.
        hidden: width, a multiple of 64. From 256 on heads are 64 wide, else 32.
        layers: depth.

    Returns:
        The directory.

    Raises:
        ValueError: no such backbone or codec, ``hidden`` is not a positive multiple of 64, or
            the streams' sizes are none of a codec's.
    """
    if recipe.backbone not in BACKBONES or recipe.codec not in CODECS:
        raise ValueError(
            f"{recipe.backbone} is none of {', '.join(BACKBONES)}, "
            f"or {recipe.codec} none of {', '.join(CODECS)}"
        )
    if hidden < 64 or hidden % 64:
        raise ValueError(f"hidden is {hidden}, not a positive multiple of 64")
    sizes = {stream.size for stream in spec.streams[spec.codec_first_stream :]}
    if len(sizes) != 1:
        raise ValueError(f"codebooks of one codec have one size, not {sorted(sizes)}")
    path = Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    spec.save(path)
    config = _config(recipe, spec, hidden, layers)
    (path / CONFIG_FILE).write_text(json.dumps(config, indent=1) + "\n")
    save_file(_weights(recipe, spec, config, seed), path / WEIGHTS_FILE, metadata={"format": "pt"})
    (path / TOKENIZER_FILE).parent.mkdir(exist_ok=True)
    byte_tokenizer().save(str(path / TOKENIZER_FILE))
    _make_codec(recipe, spec, path / CODEC_FOLDER, seed, hidden)
    return path


def byte_tokenizer() -> Tokenizer:
    """A byte-level BPE tokenizer without merges: id ``i`` is the byte ``i``."""
    vocabulary = {character: byte for byte, character in enumerate(_byte_characters())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _byte_characters() -> list[str]:
    """The character by which byte-level BPE writes each byte: printable Latin-1 stands for
    itself, the others, in order, for the characters from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def _config(recipe: Recipe, spec: StreamSpec, hidden: int, layers: int) -> dict[str, Any]:
    head_dim = 64 if hidden >= 256 else 32
    heads = hidden // head_dim
    return {
        "architectures": ["SpeechLM"],
        "backbone_architecture": BACKBONES[recipe.backbone],
        "model_type": recipe.backbone,
        "vocab_size": spec.vocab_size,
        "hidden_size": hidden,
        "intermediate_size": 3 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 2,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": MAX_POSITION_EMBEDDINGS,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "attention_bias": False,
        "tie_word_embeddings": False,
        "dtype": "float32",
    }


def _weights(
    recipe: Recipe, spec: StreamSpec, config: dict[str, Any], seed: int
) -> dict[str, Tensor]:
    """All tensors by name.

    The last channel of the residual stream carries a constant: rows bring it in through
    stream 0, no layer writes to it, and the last column of ``lm_head`` is therefore a bias.
    Without it the lengths would depend on the seed by an order of magnitude.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float) -> Tensor:
        return torch.randn(shape, generator=generator) * scale

    hidden = config["hidden_size"]
    weights: dict[str, Tensor] = {}
    for name, shape in _body_shapes(config).items():
        if len(shape) == 1:  # norms: near 1, yet none like another
            weights[name] = 1 + normal(*shape, scale=0.2)
        else:
            weights[name] = normal(*shape, scale=1.5 * shape[1] ** -0.5)
            if name.endswith(("o_proj.weight", "down_proj.weight")):  # write to the residual
                weights[name] *= (2 * config["num_hidden_layers"]) ** -0.5
                weights[name][-1] = 0
    weights["model.norm.weight"][-1] = 1
    weights["model.embed_tokens.weight"] = _embedding(
        spec, normal(spec.vocab_size, hidden, scale=0.5)
    )

    # The final norm gives h about one unit per channel, so logits deviate by about 1.2.
    head = normal(spec.vocab_size, hidden, scale=1.2 * hidden**-0.5)
    head[:, -1] = 0
    ends = sorted({*spec.audio_end_ids, *(spec.text.end_ids if spec.text else ())})
    head[ends] *= 0.4  # the bias shall decide
    head[ends, -1] = recipe.end_bias
    if spec.text is not None:
        first = spec.text.first_id
        head[first : spec.text.end] *= 0.6  # or the largest of so many outdo every end
        head[first + 0x20 : first + 0x7F, -1] = recipe.ascii_bias
    weights["lm_head.weight"] = head
    weights[STREAM_EMBEDDING] = normal(spec.num_streams, hidden, scale=0.3)
    weights[STREAM_EMBEDDING][:, -1] = 0
    return weights


def _embedding(spec: StreamSpec, random: Tensor) -> Tensor:
    embedding = random.clone()
    embedding[:, -1] = 2
    for stream in spec.streams[1:]:
        embedding[stream.first_id : stream.end, -1] = 0
        embedding[stream.pad_id, -1] = 0
    if spec.pad_embedding == "sum":  # else text rows were all alike: one text id, eight pads
        embedding[0] /= 2 * spec.num_streams
    return embedding


def _body_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the backbone's tensors, the two of vocabulary size excepted."""
    from transformers import AutoConfig, AutoModelForCausalLM  # slow to import

    values = {k: v for k, v in config.items() if k != "model_type"}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(config["model_type"], **values)
        )
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    del shapes["lm_head.weight"], shapes["model.embed_tokens.weight"]
    return shapes


def _make_codec(recipe: Recipe, spec: StreamSpec, directory: Path, seed: int, hidden: int) -> None:
    from vocoder_service import tiny  # needs the codec classes, also slow to import

    streams = spec.streams[spec.codec_first_stream :]
    makers: dict[str, Callable[..., None]] = {
        "dac": tiny.make_tiny_dac,
        "encodec": tiny.make_tiny_encodec,
        "mimi": tiny.make_tiny_mimi,
        "xcodec": tiny.make_tiny_xcodec,
    }
    makers[recipe.codec](directory, seed, num_codebooks=len(streams), codebook_size=streams[0].size)
    if spec.hears_embeddings:
        tiny.make_tiny_audio_tower(directory.parent / AUDIO_ENCODER_FOLDER, seed, hidden)
    if spec.codec_first_stream:
        tiny.make_tiny_ssl(directory.parent / SSL_FOLDER, seed, units=spec.streams[0].size)
