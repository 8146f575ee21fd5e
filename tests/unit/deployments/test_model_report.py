"""``speechlm inspect``: what a model directory can do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from demo_voice.recipe import MODEL
from deployments.cli import main
from engine_adapter.tiny import make_tiny
from tests.unit.vocoder import espnet_dac
from vocoder_service.tiny import make_tiny_audio_tower


@pytest.fixture(scope="module")
def bagpiper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny("bagpiper", tmp_path_factory.mktemp("bagpiper"))


def test_the_demonstration_voice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(MODEL), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["family"] == "demo"
    assert found["abilities"] == ["speaks"]
    assert found["backbone"] == {
        "architecture": "Qwen3ForCausalLM",
        "layers": 6,
        "hidden": 256,
        "positions": 4096,
        "parameters": 5912576,
        "dtypes": {"BF16": 70},
    }
    assert [stream["delay"] for stream in found["streams"]] == list(range(8))
    assert found["vocabulary"] == {"ids": 2320, "text": [16, 272]}
    assert found["codec"]["type"] == "dac"
    assert found["codec"]["sample_rate"] == 16000
    assert found["codec"]["frame_rate"] == 31.25
    assert found["tokenizer"] == {"ids": 256}
    assert found["voices"] == ["rms", "slt"]
    assert found["defaults"]["audio"]["top_k"] == 30
    assert found["missing"] == []


def test_as_text(bagpiper: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(bagpiper)]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = {line[:15].strip(): " ".join(line[15:].split()) for line in lines}
    assert found["family"] == "bagpiper"
    assert found["abilities"] == (
        "speaks, converses, transcribes, understands_audio, takes_instructions"
    )
    assert found["writes"] == "audio, text, text+audio"
    assert found["speech"] == "audio"
    assert found["backbone"] == "Qwen3ForCausalLM, 2 layers, hidden 64, 4096 positions"
    assert found["vocabulary"] == "160392 ids, text 256..152191"
    assert found["codec"].startswith("type xcodec, sample rate 16000, frame rate 50.0")
    hearing = "type qwen3_omni_moe_audio_encoder, sample rate 16000, seconds 300.0"
    assert found["audio encoder"] == hearing
    assert "missing" not in found


def test_what_is_missing_or_damaged(
    bagpiper: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Path(shutil.copytree(bagpiper, tmp_path / "model"))
    shutil.rmtree(model / "tokenizer")
    (model / "codec" / "model.safetensors").unlink()
    (model / "audio_encoder" / "preprocessor_config.json").unlink()
    assert main(["inspect", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["tokenizer"] is None
    assert "no model*.safetensors" in found["codec"]["error"]
    assert found["audio_encoder"] is None
    assert found["abilities"] == []
    assert {part["path"] for part in found["missing"]} == {
        "codec/",
        "tokenizer/tokenizer.json",
        "audio_encoder/",
    }
    shutil.rmtree(model / "codec")
    espnet_dac.write(model / "codec", seed=0)
    assert main(["inspect", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["codec"]["type"] == "espnet"


def test_an_audio_encoder_of_another_model(
    bagpiper: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Path(shutil.copytree(bagpiper, tmp_path / "model"))
    shutil.rmtree(model / "audio_encoder")
    make_tiny_audio_tower(model / "audio_encoder", seed=0, width=65)
    assert main(["inspect", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "65 wide, the model's 64" in found["audio_encoder"]["error"]


def test_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "nowhere")]) == 1
    assert main(["inspect", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "nowhere: no such model directory" in error
    assert "config.json: no such file" in error


def test_a_codec_that_cannot_be_read_makes_no_sound(
    bagpiper: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Path(shutil.copytree(bagpiper, tmp_path / "model"))
    for content in ("[]", "{", '{"model_type": "dac", "upsampling_ratios": "x"}'):
        (model / "codec" / "config.json").write_text(content)
        assert main(["inspect", str(model), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["codec"]["error"]
        assert "speaks" not in found["abilities"]
        assert "transcribes" in found["abilities"]
        assert [part["path"] for part in found["missing"]] == ["codec/"]


def test_nothing_but_the_report_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(make_tiny("opuslm", tmp_path / "m"))]) == 0
    assert capsys.readouterr().err == ""
