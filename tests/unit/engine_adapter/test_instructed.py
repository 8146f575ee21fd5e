"""Texts spoken as instructions say: the prompt, and which families take them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine_adapter.families import FAMILIES
from engine_adapter.instructed import instructed_prompt
from engine_adapter.request import RequestError
from engine_adapter.spec import SpecError, StreamSpec
from tests.reference import conversation as by_hand

BAGPIPER = FAMILIES["bagpiper"]
INSTRUCTIONS, TEXT = [300, 301, 302], [400, 401]


def test_bagpiper_s_instructions_are_what_its_system_says() -> None:
    said = [("system", "text", INSTRUCTIONS), ("user", "text", TEXT)]
    rows = by_hand.bagpiper(said, "audio")
    assert [[i, *[0] * 7] for i in instructed_prompt(BAGPIPER, INSTRUCTIONS, TEXT)] == rows


def test_without_instructions_the_rest_is_the_plain_prompt() -> None:
    plain = BAGPIPER.prompts["audio"]
    assert BAGPIPER.instructed[-len(plain) + 1 :] == plain[1:]
    assert BAGPIPER.instructed[0] == plain[0]


def test_which_families_take_them() -> None:
    able = [name for name, spec in FAMILIES.items() if "takes_instructions" in spec.abilities]
    assert able == ["bagpiper"]
    with pytest.raises(RequestError, match=r"^instructions: opuslm takes none"):
        instructed_prompt(FAMILIES["opuslm"], INSTRUCTIONS, TEXT)


@pytest.mark.parametrize(
    ("instructions", "text", "param"), [([], TEXT, "instructions"), (INSTRUCTIONS, [], "text")]
)
def test_neither_may_be_empty(instructions: list[int], text: list[int], param: str) -> None:
    with pytest.raises(RequestError, match=rf"^{param}: is empty"):
        instructed_prompt(BAGPIPER, instructions, text)


@pytest.mark.parametrize(
    "instructed",
    [
        ("text",),
        (1, "instructions"),
        (1, "instructions", "text", "text"),
        (1, "instructions", "voice", "text"),
        (160392, "instructions", "text"),
    ],
)
def test_a_prompt_with_other_places_or_ids_is_refused(instructed: tuple[Any, ...]) -> None:
    with pytest.raises(SpecError, match=r"instructed|vocabulary"):
        replace(BAGPIPER, instructed=instructed)


def test_a_family_with_voices_has_no_place_for_them() -> None:
    with pytest.raises(SpecError, match="instructed"):
        replace(FAMILIES["demo"], instructed=(1, "instructions", "text"))


def test_a_spec_keeps_them_in_its_file_and_an_older_file_has_none(tmp_path: Path) -> None:
    BAGPIPER.save(tmp_path)
    assert StreamSpec.load(tmp_path).instructed == BAGPIPER.instructed
    data = json.loads((tmp_path / "speech.json").read_text())
    del data["instructed"]
    assert "takes_instructions" not in StreamSpec.from_dict(data).abilities
