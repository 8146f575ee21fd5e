"""A model's voices and guidance, from its settings and its own spec."""

from dataclasses import replace
from pathlib import Path

import pytest

from deployments.builder import build
from deployments.model_card import ModelCard
from deployments.settings import ModelSettings
from engine_adapter.families import FAMILIES

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
    with pytest.raises(ValueError, match=f"'a': voices: '{asked[-1]}' is not one of rms, slt"):
        ModelCard.of(settings(asked), DEMO)


def test_a_model_without_voices_takes_any_names() -> None:
    assert ModelCard.of(settings(), OPUSLM).voices == ("default",)
    assert ModelCard.of(settings(["alloy", "echo"]), OPUSLM).voices == ("alloy", "echo")


def test_guidance_is_the_models() -> None:
    assert ModelCard.of(settings(), DEMO).cfg_scale == 1.0
    assert ModelCard.of(settings(), replace(DEMO, cfg_scale=2.5)).cfg_scale == 2.5


def test_an_application_is_not_built_with_a_voice_that_does_not_exist(tmp_path: Path) -> None:
    DEMO.save(tmp_path)
    model = {"id": "a", "path": str(tmp_path)}
    build({"models": [model]})
    with pytest.raises(ValueError, match="'alloy' is not one of"):
        build({"models": [{**model, "voices": ["alloy"]}]})
