"""OpusLM as ESPnet publishes it: ``model.pth``, a flat state dict, and ``config.yaml``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.official.checkpoint import (
    HIDDEN,
    OfficialCheckpoint,
    backbone_config,
    body,
    make_readable,
    vocabulary_tensors,
    write_beside,
)

STREAMS = 9
SPECIAL, SSL, CODES, OTHERS = 256, 5000, 8 * 1024, 70
TEXT = SPECIAL + SSL + CODES
"""The first id of text."""
EOS = 5
_TOKENS = {
    0: "<pad>",
    1: "<unk>",
    2: "<blank>",
    3: "<space>",
    4: "<continuous_placeholder>",
    5: "<sos/eos>",
    6: "<local_sos/eos>",
    7: "<unkown_task_identifer>",
    8: "<system_prompt>",
    9: "<user_input>",
    10: "<assistant_output>",
    32: "<codec_start/end>",
    33: "<ssl_start/end>",
    34: "<codec_ssl_start/end>",
    35: "<text_bpe_start/end>",
    36: "<g2p_start/end>",
    37: "<spk_start/end>",
    64: "<textlm_task>",
    80: "<codec_ssl_asr_task>",
    81: "<codec_ssl_tts_task>",
    82: "<codec_ssl_plain_tts_task>",
    83: "<codec_ssl_audiolm_task>",
    88: "<text_dialogue_task>",
    89: "<audio_dialogue_task>",
}


def write_opuslm(folder: Path, seed: int = 0, *, readable: bool = False) -> OfficialCheckpoint:
    """Writes a tiny one: OLMo-2's body, bfloat16, a flat state dict.

    Args:
        readable: see ``make_readable``.
    """
    config = backbone_config("olmo2", 100352)
    state = state_dict(config, 100352, seed)
    if readable:
        make_readable(state["corelm.lm_head.weight"], range(TEXT, TEXT + 100352), [EOS], 1.2)
    torch.save({name: tensor.bfloat16() for name, tensor in state.items()}, folder / "model.pth")
    write_training_config(folder, 100352)
    backbone, tokenizer = write_beside(folder, config)
    return OfficialCheckpoint("opuslm", folder / "model.pth", backbone, tokenizer, TEXT)


def state_dict(config: dict[str, Any], text: int, seed: int) -> dict[str, Tensor]:
    """The tensors under their official names, in float32.

    Args:
        config: of the backbone.
        text: ids of the tokenizer.
        seed: of the weights.
    """
    generator = torch.Generator().manual_seed(seed)
    embedding, head = vocabulary_tensors(vocabulary(text), (EOS,), generator)
    embedding[0] /= 2 * STREAMS  # summed eight times in every row of text
    return {
        "corelm.emb.weight": embedding,
        "corelm.lm_head.weight": head,
        # Twelve rows, as many as any of ESPnet's models could have streams.
        "corelm.head_emb.weight": torch.randn(12, HIDDEN, generator=generator) * 0.3,
        **{f"corelm.decoders.model.{n}": t for n, t in body(config, generator).items()},
        "criterion.weight": torch.ones(3),
    }


def vocabulary(text: int) -> int:
    """All ids, where so many are text's."""
    return SPECIAL + SSL + CODES + text + OTHERS


def write_training_config(folder: Path, text: int, positions: int = 2048) -> Path:
    """Writes what of ``config.yaml`` says how the model is built."""
    names = [_TOKENS.get(i, f"<unused_token_{i}>") for i in range(SPECIAL)]
    names += [f"<ssl_code{i + 1}>" for i in range(SSL)]
    names += [f"<codec_layer{i // 1024}_code{i % 1024}>" for i in range(CODES)]
    names += [f"word {i}" for i in range(text)]
    names += [f"other {i}" for i in range(OTHERS)]
    codec = SPECIAL + SSL
    bias = {
        "special_token": [0, SPECIAL],
        "ssl": [SPECIAL, codec],
        "codec": [codec, codec + CODES],
        "text_bpe": [codec + CODES, codec + CODES + text],
    }
    return write_yaml(folder / "config.yaml", names, bias, positions)


def write_yaml(
    path: Path, names: Sequence[str], bias: dict[str, list[int]], positions: int
) -> Path:
    """Writes a ``config.yaml`` with these ids."""
    lines = [
        f"token_bias: {json.dumps(bias)}",
        f"codec_token_per_frame: {STREAMS}",
        "speaker_prompt_length: 500",
        f'transformer_conf: {{"n_ctx": {positions}, "hf_model_tag": "some/backbone"}}',
        "token_list:",
        *(f"- {json.dumps(name)}" for name in names),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path
