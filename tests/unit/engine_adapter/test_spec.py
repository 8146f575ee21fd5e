"""A spec is refused where it contradicts itself, and survives its file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from engine_adapter.families import FAMILIES
from engine_adapter.spec import SPEC_FILE, SpecError, StreamSpec
from tests.unit.engine_adapter.specs import specs

DEMO, DIALOGUE, OPUSLM = FAMILIES["demo"], FAMILIES["opuslm-dialogue"], FAMILIES["opuslm"]


@given(specs)
def test_a_file_keeps_everything(spec: StreamSpec) -> None:
    read = StreamSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert read == spec
    assert list(read.voices) == list(spec.voices)


def test_voices_keep_their_order(tmp_path: Path) -> None:
    replace(DEMO, voices={"z": (7, 8), "a": (9,)}).save(tmp_path)
    assert list(StreamSpec.load(tmp_path).voices.items()) == [("z", (7, 8)), ("a", (9,))]


def test_a_file_from_before_voices_and_guidance_is_read(tmp_path: Path) -> None:
    data = OPUSLM.to_dict()
    del data["voices"], data["cfg_scale"]
    (tmp_path / SPEC_FILE).write_text(json.dumps(data))
    spec = StreamSpec.load(tmp_path)
    assert (spec.voices, spec.cfg_scale) == ({}, 1.0)
    assert spec == OPUSLM


@pytest.mark.parametrize(
    "voices",
    [
        {"a": ()},
        {"": (5,)},
        {"a": (5,), "b": (DEMO.vocab_size,)},
        {"a": (-1,)},
        {"a": (16,)},  # text
        {"a": (5, 271)},
        {"a": (272,)},  # a code of stream 0
        {"a": (2319,)},  # and of the last
        {"a": (0,)},  # the pad
        {"a": (2,)},  # opens audio
        {"a": (3,)},  # ends it
        {"a": (4,)},  # drains it
        {"a": 5},
        {"a": ("5",)},
        ["a"],
    ],
)
def test_voices_whose_ids_are_not_their_own_are_refused(voices: Any) -> None:
    with pytest.raises(SpecError):
        StreamSpec.from_dict({**DEMO.to_dict(), "voices": voices})


def test_a_voice_is_no_mark_of_the_bridge() -> None:
    prompts = {**DIALOGUE.prompts, "audio": ("voice", "text")}
    replace(DIALOGUE, prompts=prompts, voices={"a": (7,)})
    with pytest.raises(SpecError, match="'a'"):
        replace(DIALOGUE, prompts=prompts, voices={"a": (10,)})


def test_voices_and_their_place_go_together() -> None:
    with pytest.raises(SpecError, match="voices"):
        replace(DEMO, voices={})
    with pytest.raises(SpecError, match="voices"):
        replace(DEMO, prompts={"audio": (1, "text")})


def test_a_prompt_has_ids_and_slots_only() -> None:
    with pytest.raises(SpecError, match="'voices'"):
        replace(DEMO, prompts={"audio": (1, "voices", "voice", "text")})


@pytest.mark.parametrize("scale", [0.99, 0, -1, math.nan, math.inf, 101, "2", None])
def test_guidance_that_no_request_could_ask_for_is_refused(scale: Any) -> None:
    with pytest.raises(SpecError):
        StreamSpec.from_dict({**DEMO.to_dict(), "cfg_scale": scale})


def test_guidance_needs_an_unconditional_prompt() -> None:
    assert replace(DEMO, cfg_scale=2).cfg_scale == 2
    with pytest.raises(SpecError, match="unconditional"):
        replace(OPUSLM, cfg_scale=2)


@pytest.mark.parametrize("name", ["boundary", "head_bias", "pad_embedding", "unconditional"])
def test_a_rule_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match=f"{name}: 'none of them'"):
        StreamSpec.from_dict({**DEMO.to_dict(), name: "none of them"})


def test_text_that_could_not_end_is_refused() -> None:
    assert DIALOGUE.text is not None
    with pytest.raises(SpecError, match="end id"):
        replace(DIALOGUE, text=replace(DIALOGUE.text, end_ids=()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -1.0),
        ("temperature", 1000.0),
        ("temperature", math.nan),
        ("temperature", "hot"),
        ("top_k", -5),
        ("top_k", 2.5),
        ("top_k", True),
        ("top_p", 0.0),
        ("top_p", 1.5),
    ],
)
def test_sampling_that_no_request_could_ask_for(name: str, value: Any) -> None:
    data = DEMO.to_dict()
    data["sampling"]["audio"][name] = value
    with pytest.raises(SpecError, match="stream spec"):
        StreamSpec.from_dict(data)
