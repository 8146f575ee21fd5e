"""Official files as the reference takes them; the converter has no part in it."""

from __future__ import annotations

import json

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import XcodecConfig, XcodecModel
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
)
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import Qwen3OmniMoeAudioEncoder

from engine_adapter.checkpoint import STREAM_EMBEDDING
from engine_adapter.spec import StreamSpec
from tests.official.bagpiper import AUDIO, CODEC_PREFIX, INFERENCE, TOWER_PREFIX
from tests.official.checkpoint import OfficialCheckpoint
from tests.official.published import BAGPIPER_TTS, PUBLISHED
from tests.reference.log_mel import log_mel
from tests.reference.model import Model


def official_model(checkpoint: OfficialCheckpoint) -> Model:
    """The reference's model on the tensors of an official file."""
    state = torch.load(checkpoint.file, weights_only=True)
    state = state.get("module", state)
    tensors = _bagpiper(state) if checkpoint.family == "bagpiper" else _opuslm(state)
    spec = official_spec(checkpoint)
    config = json.loads(checkpoint.backbone_config.read_text())
    rope = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
    config |= {"vocab_size": spec.vocab_size, "rope_parameters": rope}
    return Model.of(spec, config, tensors)


def official_spec(checkpoint: OfficialCheckpoint) -> StreamSpec:
    """What is published of it beside its tensors."""
    if (checkpoint.file.parent / INFERENCE).is_file():
        return BAGPIPER_TTS
    return PUBLISHED[checkpoint.family]


@torch.inference_mode()
def heard(checkpoint: OfficialCheckpoint, samples: NDArray[np.float32]) -> Tensor:
    """Rows ``[N, H]`` that Bagpiper's official file makes of a clip at 16 kHz, in float32."""
    state = {n: t.float() for n, t in torch.load(checkpoint.file)["module"].items()}
    tower = Qwen3OmniMoeAudioEncoder(Qwen3OmniMoeAudioEncoderConfig(**AUDIO))
    tower.load_state_dict(_below(TOWER_PREFIX, state))
    features = torch.from_numpy(log_mel(samples)).float()
    encoded = tower.eval()(features, feature_lens=torch.tensor([features.shape[1]]))
    adaptor = "adaptor.continuous_audio."
    return encoded.last_hidden_state @ state[adaptor + "weight"].T + state[adaptor + "bias"]


@torch.inference_mode()
def sound(checkpoint: OfficialCheckpoint, codes: list[list[int]]) -> NDArray[np.float32]:
    """Audio ``[320 T]`` that the codec in Bagpiper's official file makes of frames ``[T][8]``, in
    float32, not clipped."""
    state = {n: t.float() for n, t in torch.load(checkpoint.file)["module"].items()}
    config = XcodecConfig.from_pretrained(checkpoint.file.parent / "codec")
    codec = XcodecModel(config).eval()
    codec.load_state_dict(_below(CODEC_PREFIX, state))
    decoded: NDArray[np.float32] = (
        codec.decode(torch.tensor(codes).T[None]).audio_values[0, 0].numpy()
    )
    return decoded


def _below(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}


def _bagpiper(state: dict[str, Tensor]) -> dict[str, Tensor]:
    tensors = {name: tensor for name, tensor in state.items() if name.startswith("model.")}
    tensors["lm_head.weight"] = state["lm_head.weight"]
    tensors[STREAM_EMBEDDING] = state["stream_emb.weight"]
    return tensors


def _opuslm(state: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = "corelm.decoders."
    tensors = {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}
    tensors["model.embed_tokens.weight"] = state["corelm.emb.weight"]
    tensors["lm_head.weight"] = state["corelm.lm_head.weight"]
    tensors[STREAM_EMBEDDING] = state["corelm.head_emb.weight"]
    return tensors
