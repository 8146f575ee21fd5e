"""A model's voices and guidance, from its settings and its own spec."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deployments.builder import build
from deployments.models.audio import ModelAudio
from deployments.models.card import ModelCard
from deployments.models.directory import locate
from deployments.settings import ModelSettings
from engine_adapter.families import FAMILIES
from engine_adapter.spec import SpecError
from tests.unit.vocoder import espnet_dac
from vocoder_service import tiny
from vocoder_service.audio_tower import AudioTower
from vocoder_service.codec import load_codec
from vocoder_service.encoder import load_encoder

DEMO, OPUSLM = FAMILIES["demo"], FAMILIES["opuslm"]


def settings(voices: list[str] | None = None) -> ModelSettings:
    return ModelSettings(id="a", path="nowhere", voices=voices)


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        (None, ("rms", "slt")),
        (["slt", "rms"], ("slt", "rms")),
        (["slt"], ("slt",)),
    ],
)
def test_voices_are_the_models_or_some_of_them(
    asked: list[str] | None, offered: tuple[str, ...]
) -> None:
    assert ModelCard.of(settings(asked), DEMO).voices == offered


@pytest.mark.parametrize("asked", [["alloy"], ["rms", "alloy"], ["default"]])
def test_a_voice_that_the_model_does_not_have_is_refused(asked: list[str]) -> None:
    with pytest.raises(
        ValueError, match=rf"^models\.0\.voices: '{asked[-1]}' is not one of rms, slt"
    ):
        ModelCard.of(settings(asked), DEMO)


def test_a_model_without_voices_takes_any_names() -> None:
    assert ModelCard.of(settings(), OPUSLM).voices == ("default",)
    assert ModelCard.of(settings(["alloy", "echo"]), OPUSLM).voices == ("alloy", "echo")


def test_guidance_is_the_models() -> None:
    assert ModelCard.of(settings(), DEMO).cfg_scale == 1.0
    assert ModelCard.of(settings(), replace(DEMO, cfg_scale=2.5)).cfg_scale == 2.5


def test_an_application_is_not_built_with_a_voice_that_does_not_exist(tmp_path: Path) -> None:
    model = {"id": "a", "path": str(locate("tiny:demo", tmp_path))}
    build({"models": [model]})
    with pytest.raises(ValueError, match="'alloy' is not one of"):
        build({"models": [{**model, "voices": ["alloy"]}]})


def test_abilities_streams_sample_rate_and_limits_are_listed() -> None:
    card = ModelCard.of(settings(), OPUSLM, ModelAudio(16000, "e", 320, 320))
    entry = card.entry(created=5)
    assert entry["abilities"] == ["speaks", "transcribes", "clones", "understands_audio"]
    assert (entry["streams"], entry["sample_rate"]) == (9, 16000)
    assert entry["limits"] == {"context_rows": None, "concurrent_requests": 128, "rows": 64}


def test_a_models_audio_is_that_of_its_codec(tmp_path: Path) -> None:
    config = tmp_path / "codec" / "config.json"
    config.parent.mkdir()
    for text in ("", "{}", "{"):
        config.write_text(text)
        with pytest.raises(SpecError, match=r"codec/config\.json"):
            ModelAudio.of(tmp_path)
    config.write_text('{"sample_rate": 24000}')
    first = ModelAudio.of(tmp_path)
    assert first.sample_rate == 24000
    assert ModelAudio.of(tmp_path) == first
    (tmp_path / "ssl").mkdir()
    (tmp_path / "ssl" / "quantizer.json").write_text('{"layer": 1}')
    second = ModelAudio.of(tmp_path)
    (tmp_path / "ssl" / "quantizer.json").write_text('{"layer": 2}')
    assert len({first.encoder, second.encoder, ModelAudio.of(tmp_path).encoder}) == 3


def test_a_codec_of_espnet_s_is_read_as_it_is_published(tmp_path: Path) -> None:
    """The loader and what the API says of it agree, wherever the files are below ``codec/``."""
    espnet_dac.write(tmp_path / "codec", seed=1)
    found = ModelAudio.of(tmp_path)
    assert found.sample_rate == load_codec(tmp_path / "codec").sample_rate == 16000
    [config] = tmp_path.rglob("config.yaml")
    text = config.read_text()
    config.write_text(text.replace("sampling_rate", "other_rate"))
    without = ModelAudio.of(tmp_path)
    assert without.sample_rate == load_codec(tmp_path / "codec").sample_rate == 24000
    config.write_text(text)
    [weights] = tmp_path.rglob("*.pth")
    weights.write_bytes(weights.read_bytes() + b"0")
    assert len({found.encoder, without.encoder, ModelAudio.of(tmp_path).encoder}) == 3
    config.unlink()
    with pytest.raises(SpecError, match=r"codec/config\.json"):
        ModelAudio.of(tmp_path)


def test_a_row_of_what_is_heard_is_as_long_as_the_model_has_it(tmp_path: Path) -> None:
    """As the encoders themselves have it."""
    codec = tmp_path / "codec"
    for make, samples in (
        (tiny.make_tiny_dac, 320),
        (tiny.make_tiny_encodec, 320),
        (tiny.make_tiny_mimi, 1920),
        (tiny.make_tiny_xcodec, 320),
    ):
        make(codec, seed=0, num_codebooks=2)
        assert ModelAudio.of(tmp_path).samples_per_row == samples
        assert load_encoder(codec).limits.samples_per_row == samples
        shutil.rmtree(codec)
    espnet_dac.write(codec, seed=0)
    assert ModelAudio.of(tmp_path).samples_per_row == 320
    tiny.make_tiny_audio_tower(tmp_path / "audio_encoder", seed=0, width=8)
    tower = AudioTower.load(tmp_path / "audio_encoder", 8)
    assert ModelAudio.of(tmp_path).samples_per_row == tower.limits.samples_per_row == 1280
    assert ModelAudio.of(tmp_path).samples_per_frame == 320
