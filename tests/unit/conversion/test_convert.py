"""``speechlm convert`` on tiny official checkpoints: what it writes, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from deployments.cli import main
from engine_adapter.checkpoint import STREAM_EMBEDDING, ModelDirectory
from tests.official.bagpiper import write_bagpiper
from tests.official.opuslm import write_opuslm, write_yaml
from tests.official.opuslm_dialogue import write_opuslm_dialogue
from tests.official.reading import official_spec
from tests.unit.conversion.commands import (
    Official,
    Refusal,
    State,
    Writer,
    arguments_of,
    changed,
)
from vocoder_service.codec import load_codec
from vocoder_service.tiny import make_tiny_dac, make_tiny_ssl

WRITERS: tuple[Writer, ...] = (write_bagpiper, write_opuslm, write_opuslm_dialogue)


@pytest.mark.parametrize("writer", WRITERS)
def test_every_tensor_arrives_as_it_was(writer: Writer, official: Official, tmp_path: Path) -> None:
    checkpoint = official(writer)
    assert main([*checkpoint.arguments, "--out", str(tmp_path / "out")]) == 0
    model = ModelDirectory.open(tmp_path / "out")
    assert model.spec == official_spec(checkpoint)
    state = torch.load(checkpoint.file, weights_only=True)
    state = state.get("module", state)
    served = dict(model.tensors())
    for name, tensor in served.items():
        if writer is write_bagpiper:
            source = {STREAM_EMBEDDING: "stream_emb.weight"}.get(name, name)
        else:
            source = {
                STREAM_EMBEDDING: "corelm.head_emb.weight",
                "model.embed_tokens.weight": "corelm.emb.weight",
                "lm_head.weight": "corelm.lm_head.weight",
            }.get(name, f"corelm.decoders.{name}")
        assert tensor.dtype == state[source].dtype
        assert torch.equal(tensor, state[source][: len(tensor)])
    assert len(served[STREAM_EMBEDDING]) == model.spec.num_streams
    assert model.tokenizer_file.is_file()


def test_the_configuration_is_that_of_the_backbone(official: Official, tmp_path: Path) -> None:
    checkpoint = official(write_opuslm)
    assert main([*checkpoint.arguments, "--out", str(tmp_path / "out")]) == 0
    config = ModelDirectory.open(tmp_path / "out").config
    given = json.loads(checkpoint.backbone_config.read_text())
    assert config["architectures"] == ["SpeechLM"]
    assert config["backbone_architecture"] == "Olmo2ForCausalLM"
    assert config["rms_norm_eps"] == given["rms_norm_eps"]
    assert config["rope_parameters"] == {"rope_type": "default", "rope_theta": 20000.0}
    assert config["max_position_embeddings"] == 2048  # n_ctx of config.yaml
    assert config["vocab_size"] == 113870
    assert config["tie_word_embeddings"] is False
    assert config["dtype"] == "bfloat16"
    assert "eos_token_id" not in config  # the backbone's own means nothing here


def test_the_audio_encoder_of_bagpiper(official: Official, tmp_path: Path) -> None:
    checkpoint = official(write_bagpiper)
    assert main([*checkpoint.arguments, "--out", str(tmp_path)]) == 0
    state = torch.load(checkpoint.file, weights_only=True)["module"]
    tower = "multimodal_io_dict.continuous_audio.model.audio_tower."
    encoder = load_file(tmp_path / "audio_encoder" / "model.safetensors")
    adaptor = load_file(tmp_path / "audio_encoder" / "adaptor.safetensors")
    assert {tower + n for n in encoder} == {n for n in state if n.startswith(tower)}
    assert all(torch.equal(tensor, state[tower + n]) for n, tensor in encoder.items())
    assert torch.equal(adaptor["weight"], state["adaptor.continuous_audio.weight"])
    assert torch.equal(adaptor["bias"], state["adaptor.continuous_audio.bias"])
    config = json.loads((tmp_path / "audio_encoder" / "config.json").read_text())
    assert (config["d_model"], config["output_dim"]) == (32, 24)
    features = json.loads((tmp_path / "audio_encoder" / "preprocessor_config.json").read_text())
    assert (features["feature_size"], features["do_normalize"]) == (128, True)
    assert ModelDirectory.open(tmp_path).audio_encoder == tmp_path / "audio_encoder"


def test_the_codec_of_bagpiper_is_served_unless_another_is_given(
    official: Official, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = official(write_bagpiper)
    assert main([*checkpoint.arguments, "--out", str(tmp_path / "own")]) == 0
    codes = torch.randint(1024, (1, 8, 30), generator=torch.Generator().manual_seed(0))
    original = load_codec(checkpoint.file.parent / "codec").decode(codes)
    own = load_codec(tmp_path / "own" / "codec").decode(codes)
    assert torch.allclose(own, original, atol=0.05)  # it went through bfloat16
    assert own.std() > 0.01

    make_tiny_dac(tmp_path / "dac", 0, num_codebooks=8)
    capsys.readouterr()
    arguments = [*checkpoint.arguments, "--codec", str(tmp_path / "dac")]
    assert main([*arguments, "--out", str(tmp_path / "other")]) == 0
    assert f"{tmp_path / 'dac'} takes its place" in capsys.readouterr().out
    weights = (tmp_path / "other" / "codec" / "model.safetensors").read_bytes()
    assert weights == (tmp_path / "dac" / "model.safetensors").read_bytes()


def test_what_is_missing_is_named_with_its_cost(
    official: Official, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = official(write_opuslm_dialogue)
    arguments = checkpoint.arguments
    at = arguments.index("--tokenizer")
    del arguments[at : at + 2]
    assert main([*arguments, "--out", str(tmp_path / "bare")]) == 0
    printed = capsys.readouterr().out
    for path in ("tokenizer/tokenizer.json", "codec/", "ssl/"):
        assert f"missing: {path}: no " in printed

    make_tiny_dac(tmp_path / "dac", 0, num_codebooks=8)
    make_tiny_ssl(tmp_path / "units", 0, units=5000)
    parts = ["--codec", str(tmp_path / "dac"), "--ssl", str(tmp_path / "units")]
    assert main([*checkpoint.arguments, *parts, "--out", str(tmp_path / "whole")]) == 0
    assert "missing:" not in capsys.readouterr().out
    assert ModelDirectory.open(tmp_path / "whole").ssl is not None


def test_dtype(official: Official, tmp_path: Path) -> None:
    checkpoint = official(write_opuslm_dialogue)
    arguments = [*checkpoint.arguments, "--dtype", "bfloat16"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 0
    model = ModelDirectory.open(tmp_path / "out")
    head = torch.load(checkpoint.file, weights_only=True)["module"]["corelm.lm_head.weight"]
    assert torch.equal(model.tensor("lm_head.weight"), head.bfloat16())
    assert model.config["dtype"] == "bfloat16"
    with safe_open(tmp_path / "out" / "model.safetensors", framework="pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"BF16"}  # noqa: SIM118


def test_tensors_in_any_order_of_storage(official: Official, tmp_path: Path) -> None:
    """A transposed view and a slice of a larger storage are written as what they show."""
    checkpoint = official(write_opuslm_dialogue)
    q = "corelm.decoders.model.layers.0.self_attn.q_proj.weight"
    norm = "corelm.decoders.model.norm.weight"

    def change(state: State) -> None:
        state[q] = state[q].T.contiguous().T
        state[norm] = torch.cat([torch.zeros(5), state[norm]])[5:]

    file = changed(checkpoint, tmp_path, change)
    assert main([*arguments_of(checkpoint, file), "--out", str(tmp_path / "out")]) == 0
    model = ModelDirectory.open(tmp_path / "out")
    state = torch.load(checkpoint.file, weights_only=True)["module"]
    assert torch.equal(model.tensor(q.removeprefix("corelm.decoders.")), state[q])
    assert torch.equal(model.tensor(norm.removeprefix("corelm.decoders.")), state[norm])


@pytest.mark.parametrize("parts", [("corelm", "criterion"), ("corelm",), ("criterion",)])
def test_a_head_of_the_codec_alone_becomes_part_of_the_head(
    parts: tuple[str, ...], official: Official, tmp_path: Path, refusal: Refusal
) -> None:
    """ESPnet trains one for streams 1 and up, where it is told to; its loss has it, too."""
    checkpoint = official(write_opuslm)
    own = torch.randn(8192, 64, generator=torch.Generator().manual_seed(1)).bfloat16()

    def change(state: State) -> None:
        for part in parts:
            state[f"{part}.aux_lm_head.weight"] = own

    file = changed(checkpoint, tmp_path, change)
    assert main([*arguments_of(checkpoint, file), "--out", str(tmp_path / "out")]) == 0
    expected = torch.load(checkpoint.file, weights_only=True)["corelm.lm_head.weight"]
    expected[5256:13448] = own
    assert torch.equal(ModelDirectory.open(tmp_path / "out").tensor("lm_head.weight"), expected)

    own = own[:, :60].clone()
    file = changed(checkpoint, tmp_path, change)
    assert "[8192, 60], does not fit into" in refusal(arguments_of(checkpoint, file))


def test_a_checkpoint_without_its_audio_encoder(
    official: Official, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = official(write_bagpiper)

    def change(state: State) -> None:
        for name in [n for n in state if ".audio_tower." in n or n.startswith("adaptor.")]:
            del state[name]

    file = changed(checkpoint, tmp_path, change)
    assert main([*arguments_of(checkpoint, file), "--out", str(tmp_path / "out")]) == 0
    assert "missing: audio_encoder/: it does not hear" in capsys.readouterr().out


def test_tensors_that_are_wrong_are_all_named(
    official: Official, tmp_path: Path, refusal: Refusal
) -> None:
    checkpoint = official(write_bagpiper)

    def change(state: State) -> None:
        del state["model.layers.1.mlp.up_proj.weight"], state["adaptor.continuous_audio.bias"]
        state["model.layers.0.input_layernorm.weight"] = torch.ones(63)
        state["model.layers.0.lora.weight"] = torch.ones(3)
        state["ema.step"] = torch.ones(1)

    error = refusal(arguments_of(checkpoint, changed(checkpoint, tmp_path, change)))
    missing, unknown, misshapen = error.split("; ")
    assert missing.endswith(
        "missing: model.layers.1.mlp.up_proj.weight, adaptor.continuous_audio.bias"
    )
    assert unknown == "unknown: ema.step, model.layers.0.lora.weight"
    assert misshapen == "misshapen: model.layers.0.input_layernorm.weight is [63], not [64]\n"


def test_many_missing_tensors_are_counted(
    official: Official, tmp_path: Path, refusal: Refusal
) -> None:
    checkpoint = official(write_opuslm)

    def change(state: State) -> None:
        for name in [n for n in state if ".layers.0.self_attn" in n or ".layers.0.mlp" in n]:
            del state[name]

    error = refusal(arguments_of(checkpoint, changed(checkpoint, tmp_path, change)))
    assert "missing: corelm.decoders.model.layers.0." in error
    assert error.endswith(" and 4 more\n")


@pytest.mark.parametrize("asked", ["bagpiper", "opuslm-dialogue"])
def test_another_family_is_told(
    asked: str, official: Official, refusal: Refusal, tmp_path: Path
) -> None:
    arguments = official(write_opuslm).arguments
    arguments[arguments.index("--family") + 1] = asked
    assert refusal(arguments).endswith(f"looks like opuslm, not {asked}\n")


def test_a_model_of_no_family(official: Official, tmp_path: Path, refusal: Refusal) -> None:
    file = tmp_path / "other.pt"
    torch.save({"encoder.weight": torch.ones(3), "decoder.weight": torch.ones(3)}, file)
    error = refusal(arguments_of(official(write_bagpiper), file))
    assert "no checkpoint of a known family; it holds encoder.weight, decoder.weight" in error


def test_another_vocabulary(official: Official, tmp_path: Path, refusal: Refusal) -> None:
    checkpoint = official(write_bagpiper)

    def change(state: State) -> None:
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            state[name] = state[name][:1000].clone()

    error = refusal(arguments_of(checkpoint, changed(checkpoint, tmp_path, change)))
    assert "its vocabulary is 1000 ids, that of bagpiper is 160392" in error


def test_another_token_list(official: Official, tmp_path: Path, refusal: Refusal) -> None:
    names = [f"<unused_token_{i}>" for i in range(113871)]
    bias = {"ssl": [256, 5256], "codec": [5257, 13449], "text_bpe": [13448, 113800]}
    config = write_yaml(tmp_path / "config.yaml", names, bias, 2048)
    error = refusal([*official(write_opuslm).arguments, "--config", str(config)])
    assert str(config) in error
    assert "the vocabulary is 113871 ids, not 113870" in error
    assert "0 is '<unused_token_0>', not '<pad>'" in error
    assert "token_bias: codec is [5257, 13449], not [5256, 13448]" in error


def test_voices_of_another_length(official: Official, tmp_path: Path, refusal: Refusal) -> None:
    checkpoint = official(write_opuslm)
    config = (checkpoint.file.parent / "config.yaml").read_text()
    said = tmp_path / "config.yaml"
    said.write_text(config.replace("speaker_prompt_length: 500", "speaker_prompt_length: 150"))
    error = refusal([*checkpoint.arguments, "--config", str(said)])
    assert error.endswith("config.yaml: speaker_prompt_length is 150, not 500\n")


def test_a_missing_config_yaml(official: Official, tmp_path: Path, refusal: Refusal) -> None:
    checkpoint = official(write_opuslm)
    file = Path(shutil.copy(checkpoint.file, tmp_path / "model.pth"))
    arguments = checkpoint.arguments
    arguments[arguments.index("--checkpoint") + 1] = str(file)
    assert f"{tmp_path / 'config.yaml'}: no such file; it is published" in refusal(arguments)


def test_a_backbone_of_other_sizes(official: Official, tmp_path: Path, refusal: Refusal) -> None:
    checkpoint = official(write_bagpiper)
    arguments = checkpoint.arguments
    at = arguments.index("--backbone-config")
    error = refusal(arguments[:at] + arguments[at + 2 :])
    assert "differs from Qwen/Qwen3-8B-Base, its published backbone, in hidden_size is 64" in error
    assert "--backbone-config" in error

    config = json.loads(checkpoint.backbone_config.read_text())
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**config, "num_attention_heads": 4}))
    error = refusal([*arguments, "--backbone-config", str(file)])
    assert "query_width is 64, not 128" in error
    file.write_text(json.dumps({**config, "model_type": "llama"}))
    error = refusal([*arguments, "--backbone-config", str(file)])
    assert "model_type is 'llama', not 'qwen3'" in error
    file.write_text(json.dumps({**config, "hidden_size": "wide"}))
    assert "hidden_size is 'wide'" in refusal([*arguments, "--backbone-config", str(file)])
    del config["rms_norm_eps"]
    file.write_text(json.dumps(config))
    assert "has no rms_norm_eps" in refusal([*arguments, "--backbone-config", str(file)])
