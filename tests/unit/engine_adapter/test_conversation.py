"""Prompts of several parts equal the published layouts, id by id."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from engine_adapter.conversation import PARAM, Part, cloning_parts, prompt
from engine_adapter.families import FAMILIES
from engine_adapter.layout import Layout, Segment
from engine_adapter.request import RequestError, SpeechRequest, resolve
from engine_adapter.spec import Output, SpecError, StreamSpec
from engine_adapter.wire import WireRequest, pack_auxiliary, prompt_salt
from tests.reference import conversation as by_hand
from tests.reference.model import PromptRow

BAGPIPER, OPUSLM, DIALOGUE, DEMO = (
    FAMILIES[name] for name in ("bagpiper", "opuslm", "opuslm-dialogue", "demo")
)


def codes_of(spec: StreamSpec, frames: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(s.size, size=frames) for s in spec.streams], axis=1)


def clips(spec: StreamSpec, most: int = 20) -> st.SearchStrategy[np.ndarray]:
    return st.builds(codes_of, st.just(spec), st.integers(1, most), st.integers(0, 2**32))


def texts(spec: StreamSpec) -> st.SearchStrategy[list[int]]:
    assert spec.text is not None
    return st.lists(st.integers(spec.text.first_id, spec.text.end - 1), min_size=1, max_size=9)


def embeddings_of(rows: int, seed: int) -> Tensor:
    return torch.randn(rows, 5, generator=torch.Generator().manual_seed(seed))


heard = st.builds(embeddings_of, st.integers(1, 20), st.integers(0, 2**32))


def turns(spec: StreamSpec) -> st.SearchStrategy[list[tuple[str, str, Any]]]:
    """Any parts that the family's conversation has, in any order."""
    assert spec.conversation is not None
    one: list[st.SearchStrategy[tuple[str, str, Any]]] = [
        st.tuples(
            st.just(segment.role),
            st.just(segment.content),
            texts(spec)
            if segment.content == "text"
            else heard
            if segment.embedded
            else clips(spec),
        )
        for segment in spec.conversation.segments
    ]
    return st.lists(st.one_of(one), min_size=1, max_size=4)


def built(
    spec: StreamSpec, layout: Layout | None, output: Output, parts: list[Any]
) -> list[PromptRow]:
    """A prompt's rows: ids, or, where they are zeros instead of which it has one, an embedding."""
    assert layout is not None
    made = prompt(
        spec, layout, output, [Part(part[0], part[1], np.asarray(part[2])) for part in parts]
    )
    assert made.rows.dtype == np.int32
    rows: list[PromptRow] = made.rows.tolist()
    if made.embedded is not None:
        assert not made.rows[made.embedded.positions].any()
        for position, row in zip(made.embedded.positions, made.embedded.embeddings, strict=True):
            rows[position] = torch.from_numpy(row)
    return rows


def plain(rows: Sequence[PromptRow]) -> list[Any]:
    """Rows that can be compared."""
    return [row.tolist() if isinstance(row, Tensor) else list(row) for row in rows]


FEW = settings(max_examples=30)


@FEW
@given(st.data(), st.sampled_from(["text", "text+audio"]))
def test_turns_of_the_dialogue_model(data: st.DataObject, output: Output) -> None:
    said = data.draw(turns(DIALOGUE))
    expected = by_hand.dialogue(said, spoken=output == "text+audio")
    assert built(DIALOGUE, DIALOGUE.conversation, output, said) == expected


@FEW
@given(st.data(), st.sampled_from(["audio", "text", "text+audio"]))
def test_turns_of_bagpiper(data: st.DataObject, output: Output) -> None:
    said = data.draw(turns(BAGPIPER))
    expected = by_hand.bagpiper(said, output)
    assert plain(built(BAGPIPER, BAGPIPER.conversation, output, said)) == plain(expected)


@given(clips(OPUSLM))
def test_audio_to_be_written_down(clip: np.ndarray) -> None:
    rows = built(OPUSLM, OPUSLM.transcription, "text", [("user", "audio", clip)])
    assert rows == by_hand.opuslm_transcription(clip.tolist())


@FEW
@given(st.data(), st.sampled_from([1, 3, 499, 500, 501, 620]))
def test_a_voice_to_imitate(data: st.DataObject, frames: int) -> None:
    """A reference is cut or padded to 500 frames, each family in its own order."""
    speaker = codes_of(OPUSLM, frames, frames)
    for spec, expected in ((OPUSLM, by_hand.opuslm_cloning), (DIALOGUE, by_hand.dialogue_cloning)):
        words = data.draw(texts(spec))
        assert spec.cloning is not None
        parts = cloning_parts(spec.cloning, words, speaker)
        rows = prompt(spec, spec.cloning, "audio", parts).rows
        assert rows.tolist() == expected(words, speaker.tolist())


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        (
            [("system", "text", [300]), ("user", "text", [301, 302])],
            [1, 4, 7, 300, 2, 5, 7, 301, 302, 2, 6, 7],
        ),
        (
            [("user", "text", [300]), ("user", "text", [301])],
            [1, 5, 7, 300, 3, 5, 7, 301, 2, 6, 7],
        ),
        (
            [("user", "text", [300]), ("assistant", "text", [301]), ("user", "text", [302])],
            [1, 5, 7, 300, 2, 6, 7, 301, 2, 5, 7, 302, 2, 6, 7],
        ),
    ],
)
def test_bagpipers_chat_in_plain_ids(said: list[Any], ids: list[int]) -> None:
    rows = built(BAGPIPER, BAGPIPER.conversation, "text+audio", said)
    assert rows == [[i, *[0] * 7] for i in ids]


def test_the_dialogues_turn_in_plain_ids() -> None:
    """Stream 0, and the first codec stream one row behind it."""
    clip = np.array([[7, *[1] * 8], [9, *[2] * 8]])
    said = [("user", "audio", clip), ("user", "text", [13450])]
    rows = np.array(built(DIALOGUE, DIALOGUE.conversation, "text+audio", said))
    zeros = [0] * 8
    primary = [5, 89, 9, 34, 263, 265, *zeros, 9, 35, 13450, *zeros, 10, 35]
    assert rows[:, 0].tolist() == primary
    assert rows[3:8, 1].tolist() == [0, 0, 5257, 5258, 0]
    assert rows[11:15, 8].tolist() == [0, 12425, 12426, 0]
    assert np.count_nonzero(rows[:, 1:]) == 2 * 8


@pytest.mark.parametrize("output", ["text", "text+audio"])
@pytest.mark.parametrize("spec", [BAGPIPER, DIALOGUE], ids=["bagpiper", "dialogue"])
def test_one_turn_of_text_is_the_prompt_of_that_text(spec: StreamSpec, output: Output) -> None:
    words = [20000, 20001]
    plain = resolve(SpeechRequest(text="a", output=output), spec, words).prompt
    assert built(spec, spec.conversation, output, [("user", "text", words)]) == plain.tolist()


@FEW
@given(st.data())
def test_every_prompt_is_a_valid_request(data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from([BAGPIPER, DIALOGUE]))
    said: list[Any] = data.draw(turns(spec))
    assert spec.conversation is not None
    parts = [Part(role, content, np.asarray(value)) for role, content, value in said]
    made = prompt(spec, spec.conversation, "text+audio", parts)
    request = SpeechRequest(
        prompt_ids=made.rows.tolist(), embedded=made.embedded, output="text+audio"
    )
    resolved = resolve(request, spec, None)
    assert resolved.prompt.tolist() == made.rows.tolist()
    asked, made_of = resolved.embedded, made.embedded
    assert (asked and asked.pack()) == (made_of and made_of.pack())


def test_clips_that_agree_on_stream_0_have_different_salts() -> None:
    """vLLM's prefix cache would take their blocks for the same."""
    one = codes_of(OPUSLM, 40, 1)
    other = one.copy()
    other[20, 5] = (other[20, 5] + 1) % 1024
    salts = []
    for clip in (one, other):
        rows = built(OPUSLM, OPUSLM.transcription, "text", [("user", "audio", clip)])
        salts.append(prompt_salt(pack_auxiliary(np.array(rows, dtype=np.int32))))
    assert salts[0] != salts[1]
    assert None not in salts


def test_clips_of_one_length_have_different_salts() -> None:
    """Embedded rows have the same ids whatever is heard."""
    assert BAGPIPER.transcription is not None
    salts = []
    for seed in (1, 1, 2):
        clip = embeddings_of(40, seed).numpy()
        made = prompt(BAGPIPER, BAGPIPER.transcription, "text", [Part("user", "audio", clip)])
        request = SpeechRequest(
            prompt_ids=made.rows.tolist(), embedded=made.embedded, output="text"
        )
        salts.append(WireRequest.of(resolve(request, BAGPIPER, None), room=99).salt)
    assert salts[0] == salts[1] != salts[2]
    assert None not in salts


AUDIO = codes_of(DIALOGUE, 3, 0)
BAD: list[tuple[str, StreamSpec, Output, list[Any]]] = [
    ("nothing", DIALOGUE, "text", []),
    ("text of nobody", DIALOGUE, "text", [("system", "text", [13450])]),
    ("audio that is no codes", BAGPIPER, "text", [("user", "audio", codes_of(BAGPIPER, 3, 0))]),
    ("no rows", BAGPIPER, "text", [("user", "audio", np.zeros((0, 5), np.float32))]),
    ("no number", BAGPIPER, "text", [("user", "audio", np.full((2, 5), np.nan, np.float32))]),
    ("doubles", BAGPIPER, "text", [("user", "audio", np.zeros((2, 5)))]),
    ("no words", DIALOGUE, "text", [("user", "text", [])]),
    ("no frames", DIALOGUE, "text", [("user", "audio", AUDIO[:0])]),
    ("a stream missing", DIALOGUE, "text", [("user", "audio", AUDIO[:, 1:])]),
    ("one row", DIALOGUE, "text", [("user", "audio", AUDIO[0])]),
    ("below", DIALOGUE, "text", [("user", "audio", AUDIO - 5000)]),
    ("above", DIALOGUE, "text", [("user", "audio", AUDIO + 1024)]),
]


@pytest.mark.parametrize(("spec", "output", "parts"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_what_cannot_be_laid_out_is_refused(
    spec: StreamSpec, output: Output, parts: list[Any]
) -> None:
    with pytest.raises(RequestError) as error:
        built(spec, spec.conversation, output, parts)
    assert error.value.param == PARAM


def test_an_answer_that_a_layout_does_not_have_is_refused() -> None:
    with pytest.raises(RequestError) as error:
        built(OPUSLM, OPUSLM.transcription, "audio", [("user", "audio", AUDIO)])
    assert error.value.param == "output"


def test_abilities() -> None:
    assert DEMO.abilities == ("speaks",)
    assert BAGPIPER.abilities == (
        "speaks",
        "converses",
        "transcribes",
        "understands_audio",
        "takes_instructions",
    )
    assert OPUSLM.abilities == ("speaks", "transcribes", "clones", "understands_audio")
    assert DIALOGUE.abilities == ("speaks", "converses", "clones", "understands_audio")
    families = (DEMO, BAGPIPER, OPUSLM, DIALOGUE)
    assert [spec.takes_audio for spec in families] == [False, True, True, True]
    assert [spec.hears_embeddings for spec in families] == [False, True, False, False]


def test_without_its_encoder_a_family_of_embeddings_does_not_hear(tmp_path: Path) -> None:
    assert BAGPIPER.abilities_in(tmp_path) == ("speaks", "converses", "takes_instructions")
    (tmp_path / "audio_encoder").mkdir()
    for name in ("config.json", "preprocessor_config.json", "model", "adaptor"):
        assert BAGPIPER.abilities_in(tmp_path) == ("speaks", "converses", "takes_instructions")
        if name.endswith(".json"):
            (tmp_path / "audio_encoder" / name).touch()
        else:
            weights = {"a": torch.zeros(1)}
            save_file(weights, tmp_path / "audio_encoder" / f"{name}.safetensors")
    assert BAGPIPER.abilities_in(tmp_path) == BAGPIPER.abilities


def test_a_file_from_before_layouts_is_read() -> None:
    data = json.loads(json.dumps(OPUSLM.to_dict()))
    for key in ("conversation", "transcription", "cloning"):
        del data[key]
    assert StreamSpec.from_dict(data).abilities == ("speaks",)


LAYOUT = DIALOGUE.conversation
assert LAYOUT is not None
HEARD = Segment("user", "audio", (9, 34), embedded=True)
SPEAKER = Segment("system", "speaker", (37,), drain=8)


@pytest.mark.parametrize(
    "changes",
    [
        {"conversation": replace(LAYOUT, begin=(62670,))},
        {"conversation": replace(LAYOUT, segments=(*LAYOUT.segments, LAYOUT.segments[-1]))},
        {"conversation": replace(LAYOUT, segments=(Segment("user", "audio", (9, 34), drain=7),))},
        {"conversation": replace(LAYOUT, answers={"video": (10,)})},
        {"transcription": replace(LAYOUT, segments=())},
        {"transcription": replace(LAYOUT, answers={"text+audio": (10,)})},
        {"cloning": replace(LAYOUT, answers={"text": (10,)})},
        {"cloning": Layout((5,), (Segment("user", "text", (35,)),), {"audio": ()})},
        {"cloning": Layout((5,), (SPEAKER,), {"text+audio": ()})},
        {"conversation": replace(LAYOUT, segments=(replace(HEARD, role="assistant"),))},
        {"conversation": replace(LAYOUT, segments=(replace(HEARD, content="text"),))},
        {"conversation": replace(LAYOUT, segments=(replace(HEARD, drain=8),))},
        {"conversation": replace(LAYOUT, segments=(HEARD, SPEAKER))},
    ],
)
def test_layouts_that_contradict_themselves_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        replace(DIALOGUE, **changes)


@pytest.mark.parametrize("value", [5, {"segments": []}, {**LAYOUT.__dict__, "more": 1}])
def test_a_malformed_layout_is_refused(value: Any) -> None:
    with pytest.raises(SpecError):
        StreamSpec.from_dict({**DIALOGUE.to_dict(), "conversation": value})
