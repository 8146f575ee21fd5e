"""A request is served exactly as it is asked, or refused by the name of the field at fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_adapter.families import FAMILIES
from engine_adapter.request import (
    MAX_SEED,
    RequestError,
    ResolvedRequest,
    SpeechRequest,
    prompt_rows,
    resolve,
)
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import StreamSpec
from engine_adapter.step import SpeechStep
from engine_adapter.wire import WireRequest

DEMO, BAGPIPER, OPUSLM = FAMILIES["demo"], FAMILIES["bagpiper"], FAMILIES["opuslm"]
DIALOGUE = FAMILIES["opuslm-dialogue"]
FIRST = [stream.first_id for stream in DEMO.streams]
HUGE = 10**400  # JSON knows no largest number


def resolved(
    spec: StreamSpec = DEMO, encoded: list[int] | None = None, **fields: Any
) -> ResolvedRequest:
    if "text" not in fields:
        fields.setdefault("prompt_ids", [1, 20])
    return resolve(SpeechRequest(**fields), spec, encoded)


BAD_PROMPTS: dict[str, Any] = {
    "empty": [],
    "no sequence": 5,
    "negative": [1, -1],
    "outside the vocabulary": [DEMO.vocab_size],
    "far outside": [2**70],
    "bool": [True],
    "fraction": [1.0],
    "nothing": [1, None],
    "words": ["1", "2"],
    "ragged": [FIRST, FIRST[:-1]],
    "too wide": [[*FIRST, 0]],
    "empty row": [[]],
    "bool in a row": [[1, *FIRST[1:-1], True]],
    "fraction in a row": [[1.5, *FIRST[1:]]],
    "code of another stream": [[1, FIRST[2], *FIRST[2:]]],
    "end of a stream": [[1, FIRST[1] + 256, *FIRST[2:]]],
}


@pytest.mark.parametrize("field", ["prompt_ids", "unconditional_ids"])
@pytest.mark.parametrize("ids", BAD_PROMPTS.values(), ids=BAD_PROMPTS.keys())
def test_a_bad_prompt_is_refused_by_name(field: str, ids: Any) -> None:
    with pytest.raises(RequestError, match=f"^{field}: ") as error:
        resolved(cfg_scale=2.0, **{field: ids})
    assert error.value.param == field


BAD_FIELDS: list[tuple[str, Any]] = [
    ("output", "speech"),
    ("output", "text"),  # the family writes audio only
    ("output", None),
    ("cfg_scale", 0.999),
    ("cfg_scale", 0),
    ("cfg_scale", -2.0),
    ("cfg_scale", float("nan")),
    ("cfg_scale", float("inf")),
    ("cfg_scale", 1e300),  # more than the float32 it is used in
    ("cfg_scale", HUGE),
    ("cfg_scale", True),
    ("cfg_scale", "2"),
    ("seed", -1),
    ("seed", MAX_SEED + 1),
    ("seed", 1.0),
    ("seed", True),
    ("temperature", -0.1),
    ("temperature", 100.5),
    ("temperature", float("nan")),
    ("temperature", HUGE),
    ("temperature", True),
    ("temperature", "1"),
    ("top_k", -1),
    ("top_k", 1.5),
    ("top_k", True),
    ("top_p", 0),
    ("top_p", -0.5),
    ("top_p", 1.01),
    ("top_p", float("nan")),
    ("top_p", HUGE),
    ("max_frames", 0),
    ("max_frames", -5),
    ("max_frames", 2.5),
    ("max_frames", True),
    ("max_text_tokens", 0),
    ("max_text_tokens", "3"),
]


@pytest.mark.parametrize(
    ("field", "value"), BAD_FIELDS, ids=[f"{field} {value!r:.12}" for field, value in BAD_FIELDS]
)
def test_a_bad_value_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(RequestError, match=f"^{field}: ") as error:
        resolved(**{field: value})
    assert error.value.param == field


def accepted(field: str, value: Any) -> ResolvedRequest | None:
    """None where the field is refused by name."""
    try:
        return resolved(**{field: value})
    except RequestError as error:
        if error.param != field:
            raise
        return None


LARGE = {"2**31 - 1": 2**31 - 1, "2**31": 2**31, "2**63": 2**63, "2**64": 2**64, "10**400": HUGE}


@pytest.mark.parametrize("field", ["top_k", "max_frames", "max_text_tokens"])
@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE)
def test_a_limit_beyond_all_use_is_refused_or_fits_all_that_follows(field: str, value: int) -> None:
    """What the worker cannot hold would end the engine, and every other request with it."""
    request = accepted(field, value)
    if request is not None:
        message = msgspec.msgpack.encode(WireRequest.of(request, room=99).to_extra_args())
        wire = WireRequest.from_extra_args(msgspec.msgpack.decode(message))
        SpeechStep(DEMO, max_rows=1, max_length=99).add("a", 2, wire)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": None}, "text: is missing; give text, or prompt_ids"),
        (
            {"text": "hi", "prompt_ids": [1]},
            "prompt_ids: give either text or prompt_ids, not both",
        ),
    ],
)
def test_exactly_one_of_text_and_prompt_ids(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError) as error:
        resolved(encoded=[20], **fields)
    assert str(error.value) == message


@pytest.mark.parametrize("encoded", [[], None])
def test_text_that_encodes_to_nothing_is_refused(encoded: list[int] | None) -> None:
    with pytest.raises(RequestError) as error:
        resolved(encoded=encoded, text="")
    assert error.value.param == "text"


def test_guidance_needs_an_unconditional_prompt() -> None:
    with pytest.raises(RequestError, match="unconditional_ids") as error:
        resolved(OPUSLM, cfg_scale=1.5)
    assert error.value.param == "cfg_scale"
    brought = resolved(OPUSLM, cfg_scale=1.5, unconditional_ids=[5, 82]).unconditional
    assert brought is not None
    assert brought[:, 0].tolist() == [5, 82]


GUIDED_DEMO, GUIDED_BAGPIPER = (replace(spec, cfg_scale=2.5) for spec in (DEMO, BAGPIPER))


def test_guidance_is_the_familys_where_a_request_does_not_say() -> None:
    request = resolved(GUIDED_DEMO)
    assert (request.cfg_scale, request.guided) == (2.5, True)
    assert request.unconditional is not None
    assert resolved(GUIDED_DEMO, cfg_scale=1.5).cfg_scale == 1.5
    assert not resolved(GUIDED_DEMO, cfg_scale=1).guided


def test_the_familys_guidance_is_not_for_an_answer_without_audio() -> None:
    assert not resolved(GUIDED_BAGPIPER, output="text").guided
    assert resolved(GUIDED_BAGPIPER, output="text+audio").guided
    with pytest.raises(RequestError, match="guidance applies to audio"):
        resolved(GUIDED_BAGPIPER, output="text", cfg_scale=2.5)


def test_guidance_is_for_audio() -> None:
    with pytest.raises(RequestError) as error:
        resolved(BAGPIPER, output="text", cfg_scale=1.5)
    assert error.value.param == "cfg_scale"


def test_guidance_of_each_kind_of_family() -> None:
    assert resolved(BAGPIPER, cfg_scale=2).unconditional is None  # zeros, as many as needed
    prompt = resolved(DEMO, cfg_scale=2).unconditional
    assert prompt is not None
    assert prompt.tolist() == [[1, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("scale", [1, 1.0])
def test_a_scale_of_one_is_no_guidance(scale: float) -> None:
    request = resolved(cfg_scale=scale)
    assert not request.guided
    assert request.unconditional is None
    assert type(request.cfg_scale) is float


def test_the_smallest_guidance_is_guidance_in_float32_too() -> None:
    """The scale is applied in float32, where 1 + 1e-9 is 1."""
    request = resolved(cfg_scale=1 + 1e-9)
    assert request.guided == (np.float32(request.cfg_scale) > 1)


@pytest.mark.parametrize("spec", FAMILIES.values(), ids=FAMILIES)
def test_defaults_are_those_of_each_modality(spec: StreamSpec) -> None:
    request = resolved(spec, prompt_ids=[spec.audio_begin])
    assert request.sampling == spec.sampling
    assert request.output == "audio"
    assert request.cfg_scale == 1.0
    assert request.max_frames is None
    assert request.max_text_tokens is None


def test_what_is_asked_holds_for_every_modality() -> None:
    request = resolved(DIALOGUE, prompt_ids=[5], output="text+audio", temperature=0, top_p=0.5)
    assert request.sampling == {
        "text": SamplingDefaults(0.0, 20, 0.5),
        "audio": SamplingDefaults(0.0, 30, 0.5),
    }
    assert resolved(top_k=0).sampling["audio"] == SamplingDefaults(0.8, 0, 1.0)


def test_bounds_belong_to_the_values() -> None:
    request = resolved(seed=MAX_SEED, temperature=100, top_p=1, top_k=1, max_frames=1)
    assert request.seed == MAX_SEED
    assert request.sampling["audio"] == SamplingDefaults(100.0, 1, 1.0)
    assert request.max_frames == 1
    assert resolved(seed=0).seed == 0


def test_a_seed_is_drawn_where_none_is_given() -> None:
    seeds = {resolved().seed for _ in range(8)}
    assert len(seeds) == 8
    assert all(0 <= seed <= MAX_SEED for seed in seeds)


def test_numpy_numbers_are_numbers() -> None:
    request = resolved(prompt_ids=np.array([1, 20]), seed=np.int64(3), max_frames=np.int32(4))
    assert request.prompt[:, 0].tolist() == [1, 20]
    assert (request.seed, request.max_frames) == (3, 4)
    assert type(request.seed) is type(request.max_frames) is int  # as messages need them


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_text_takes_its_place_in_the_familys_prompt(family: str) -> None:
    spec = FAMILIES[family]
    assert spec.text is not None
    words = [spec.text.first_id, spec.text.end - 1]
    voice = list(next(iter(spec.voices.values()), ()))
    for output, prompt in spec.prompts.items():
        request = resolved(spec, encoded=words, text="hi", output=output)
        expected: list[Any] = list(prompt)
        if "voice" in prompt:
            place = expected.index("voice")
            expected[place : place + 1] = voice
        place = expected.index("text")
        expected[place : place + 1] = words
        assert request.prompt[:, 0].tolist() == expected
        assert not request.prompt[:, 1:].any()


@pytest.mark.parametrize(
    ("voice", "ids"), [(None, [1, 5, 20]), ("rms", [1, 5, 20]), ("slt", [1, 6, 20])]
)
def test_a_voice_takes_its_place_in_the_familys_prompt(voice: str | None, ids: list[int]) -> None:
    request = resolved(encoded=[20], text="hi", voice=voice)
    assert request.prompt[:, 0].tolist() == ids


def test_a_voice_may_be_several_ids() -> None:
    spec = replace(DEMO, voices={"b": (8, 7), "a": (9,)})
    assert resolved(spec, [20], text="hi").prompt[:, 0].tolist() == [1, 8, 7, 20]
    assert resolved(spec, [20], text="hi", voice="a").prompt[:, 0].tolist() == [1, 9, 20]


@pytest.mark.parametrize("voice", ["alloy", "", "RMS", 5, ["rms"], {"id": "rms"}, True])
def test_an_unknown_voice_is_refused_and_the_known_are_named(voice: Any) -> None:
    with pytest.raises(RequestError, match="is not one of rms, slt") as error:
        resolved(encoded=[20], text="hi", voice=voice)
    assert error.value.param == "voice"


def test_a_voice_is_refused_where_it_would_change_nothing() -> None:
    without = replace(
        GUIDED_BAGPIPER,
        voices={"a": (9,)},
        instructed=(),
        prompts={**BAGPIPER.prompts, "audio": (1, "voice", "text")},
    )
    for spec, fields in (
        (BAGPIPER, {"text": "hi"}),
        (without, {"text": "hi", "output": "text"}),
        (DEMO, {"prompt_ids": [1, 5, 20]}),
    ):
        with pytest.raises(RequestError, match="voice: ") as error:
            resolved(spec, encoded=[300], voice="a", **fields)
        assert error.value.param == "voice"
    assert resolved(without, encoded=[300], text="hi", voice="a").prompt[:, 0].tolist() == [
        *(1, 9, 300)
    ]


@given(st.data())
def test_rows_keep_their_ids(data: st.DataObject) -> None:
    """Plain ids and rows may be mixed; a stream takes its codes, its pad and 0."""
    spec = data.draw(st.sampled_from([DEMO, BAGPIPER, OPUSLM]))
    any_id = st.integers(0, spec.vocab_size - 1)
    wide = st.tuples(
        any_id,
        *(
            st.integers(s.first_id, s.end - 1) | st.sampled_from([0, s.pad_id])
            for s in spec.streams[1:]
        ),
    )
    ids = data.draw(st.lists(any_id | wide | wide.map(list), min_size=1, max_size=6))
    rows = prompt_rows("prompt_ids", ids, spec)  # type: ignore[arg-type]
    assert rows.dtype == np.int32
    silent = [0] * (spec.num_streams - 1)
    assert rows.tolist() == [[i, *silent] if isinstance(i, int) else list(i) for i in ids]
