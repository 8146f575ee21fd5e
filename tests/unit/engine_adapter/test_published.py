"""The served families are what is published of them, id by id."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from engine_adapter.conversation import Part, prompt
from engine_adapter.families import FAMILIES
from engine_adapter.phases import PhaseTable
from engine_adapter.request import SpeechRequest, resolve
from engine_adapter.spec import SPEC_FILE, Output, StreamSpec
from tests.official.published import PUBLISHED

# Of Bagpiper these depend on the checkpoint: tests/unit/conversion/test_recipe.py.
BY_CHECKPOINT = {"cfg_scale", "min_frames"}
ZEROS = [0] * 8


@pytest.mark.parametrize("family", list(PUBLISHED))
def test_ids_layouts_and_rules(family: str) -> None:
    served, published = FAMILIES[family], PUBLISHED[family]
    for field in fields(published):
        if family != "bagpiper" or field.name not in BY_CHECKPOINT:
            assert getattr(served, field.name) == getattr(published, field.name), field.name


@pytest.mark.parametrize(
    ("family", "output", "text", "ids"),
    [
        ("bagpiper", "audio", [300, 301], [1, 5, 7, 300, 301, 2, 6]),
        ("bagpiper", "text", [300, 301], [1, 5, 7, 300, 301, 2, 6, 7]),
        ("bagpiper", "text+audio", [300, 301], [1, 5, 7, 300, 301, 2, 6, 7]),
        ("opuslm", "audio", [13449, 13450], [5, 82, 35, 13449, 13450, *ZEROS]),
        ("opuslm", "text", [13449, 13450], [5, 64, 13449, 13450]),
        ("opuslm-dialogue", "audio", [13449], [5, 89, 10, 35, 13449, *ZEROS, 10]),
        ("opuslm-dialogue", "text", [13449], [5, 88, 9, 35, 13449, *ZEROS, 10, 35]),
        ("opuslm-dialogue", "text+audio", [13449], [5, 89, 9, 35, 13449, *ZEROS, 10, 35]),
    ],
)
def test_prompts_of_one_text(family: str, output: Output, text: list[int], ids: list[int]) -> None:
    spec = FAMILIES[family]
    resolved = resolve(SpeechRequest(text="...", output=output), spec, text)
    assert resolved.prompt.tolist() == [[i, *[0] * (spec.num_streams - 1)] for i in ids]


def test_counts_of_a_plain_sentence() -> None:
    """ "Hello world" is published as 14 prompt ids and 68 written ones for 58 frames of OpusLM.

    Ours are 13 and the mark that opens audio; of the others, its reference writes one for each
    frame, the end, 8 that flush the streams and one more. Here the last row is the one that
    completes the last frame, which is the seventh behind the end.
    """
    spec = FAMILIES["opuslm"]
    resolved = resolve(SpeechRequest(text="Hello world"), spec, [13449, 13450])
    assert len(resolved.prompt) + len([spec.audio_begin]) == 14
    assert spec.audio_rows(58) == 58 + 1 + 7 == 68 - 2


@pytest.mark.parametrize(
    ("family", "text", "end", "ids"),
    [
        ("opuslm-dialogue", 13449, 5, [13449, *ZEROS, 10, 34]),
        ("bagpiper", 300, 3, [300, 3, 6, 8]),
        ("bagpiper", 300, 2, [300, 3, 6, 8]),
    ],
)
def test_between_text_and_audio(family: str, text: int, end: int, ids: list[int]) -> None:
    """The end of text is not kept, whichever it was."""
    table = PhaseTable(FAMILIES[family], 1)
    table.start(0, output="text+audio", prompt_rows=1, room=99, max_frames=1, max_text_tokens=None)
    slots = np.zeros(1, dtype=np.int64)
    sampled = np.full((len(ids), 1, FAMILIES[family].num_streams), 7, dtype=np.int32)
    sampled[:2, 0, 0] = text, end
    rows = np.concatenate([table.advance(slots, row)[0] for row in sampled])
    assert rows[:, 0].tolist() == ids
    assert not rows[:, 1:].any()


def test_the_other_layouts_of_opuslm_are_edits_of_its_file(tmp_path: Path) -> None:
    """The mark of text before every text, and none behind audio, as ESPnet's preprocessor has it
    (docs/families.md)."""
    FAMILIES["opuslm"].save(tmp_path)
    data = json.loads((tmp_path / SPEC_FILE).read_text())
    data["prompts"]["text"] = [5, 64, 35, "text"]
    data["transcription"]["segments"][0]["ends"] = []
    (tmp_path / SPEC_FILE).write_text(json.dumps(data))
    spec = StreamSpec.load(tmp_path)
    written = resolve(SpeechRequest(text="...", output="text"), spec, [13449])
    assert written.prompt[:, 0].tolist() == [5, 64, 35, 13449]
    assert spec.transcription is not None
    clip = np.arange(18).reshape(2, 9)
    heard = prompt(spec, spec.transcription, "text", [Part("user", "audio", clip)]).rows
    assert heard[:, 0].tolist() == [5, 80, 34, 256, 265, *ZEROS, 35]
    assert heard[:, 8].tolist() == [0] * 11 + [12424 + 8, 12424 + 17, 0]
