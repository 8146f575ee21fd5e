"""Whatever is asked of the engine is refused by the name of the field at fault, or can be sent to
its core; whatever arrives there in another way is refused, too."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from deployments.speech.stream_messages import CLIENT_MESSAGE
from engine_adapter.embedded import EmbeddedRows
from engine_adapter.families import FAMILIES
from engine_adapter.request import RequestError, SpeechRequest, resolve
from engine_adapter.wire import KEY, WireRequest, unpack_auxiliary
from tests.faults.mutations import TRIES, mutated

NUMBERS = (
    st.integers(-2, 300)
    | st.sampled_from([10**400, -(2**63), 2**31, 2**63])
    | st.floats()
    | st.booleans()
)
ANYTHING = st.recursive(
    st.none() | NUMBERS | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)
PROMPTS = st.lists(st.integers(0, 300), min_size=1, max_size=4)
EMBEDDED = st.builds(
    lambda first, rows, width: EmbeddedRows.stretch(first, np.ones((rows, width), np.float32)),
    st.integers(-1, 4),
    st.integers(0, 3),
    st.integers(1, 3),
)
PLAUSIBLE: dict[str, st.SearchStrategy[Any]] = {
    "prompt_ids": PROMPTS,
    "unconditional_ids": PROMPTS,
    "embedded": EMBEDDED,
    "output": st.sampled_from(["audio", "text", "text+audio", "text_audio"]),
    "voice": st.sampled_from(["rms", "slt", ""]),
    "cfg_scale": st.floats(0, 20),
}
FIELDS = [field.name for field in fields(SpeechRequest)]


@st.composite
def requests(draw: st.DrawFn) -> SpeechRequest:
    """Of which some fields are plausible and others are anything."""
    given_fields: dict[str, Any] = {"prompt_ids": draw(PROMPTS)}
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=4, unique=True)):
        plausible = PLAUSIBLE.get(name, NUMBERS)
        # Embeddings are made by this project; whoever asks cannot send any.
        given_fields[name] = draw(plausible if name == "embedded" else plausible | ANYTHING)
    if draw(st.booleans()):
        del given_fields["prompt_ids"]
    return SpeechRequest(**given_fields)


def check_refusal(error: RequestError) -> None:
    assert error.param in FIELDS
    assert str(error).startswith(f"{error.param}: ")


@TRIES
@given(family=st.sampled_from(sorted(FAMILIES)), request=requests(), encoded=st.none() | PROMPTS)
def test_a_request_is_refused_by_name_or_can_be_sent(
    family: str, request: SpeechRequest, encoded: list[int] | None
) -> None:
    spec = FAMILIES[family]
    try:
        resolved = resolve(request, spec, encoded if isinstance(request.text, str) else None)
    except RequestError as error:
        check_refusal(error)
        return
    message = msgspec.msgpack.encode(WireRequest.of(resolved, room=99).to_extra_args())
    read = WireRequest.from_extra_args(msgspec.msgpack.decode(message))
    assert (read.seed, read.cfg_scale, read.output) == (
        resolved.seed,
        resolved.cfg_scale,
        resolved.output,
    )
    auxiliary = unpack_auxiliary(read.auxiliary, spec.num_streams)
    if auxiliary is not None:
        np.testing.assert_array_equal(auxiliary, resolved.prompt[:, 1:])
    for modality in spec.sampling:
        sampling = read.sampling_of(modality)
        assert sampling.temperature >= 0
        assert 0 < sampling.top_p <= 1
        assert sampling.top_k >= 0


@TRIES
@given(arguments=st.none() | ANYTHING | st.dictionaries(st.just(KEY), ANYTHING))
def test_what_did_not_come_through_the_front_end_is_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match="SpeechEngine"):
        WireRequest.from_extra_args(arguments)


MESSAGE = b'{"type": "start", "model": "demo", "voice": {"id": "slt"}, "seed": 7, "speed": 1.5}'
TOKENS = (b"null", b"1e999", b"NaN", b"\\ud800", b"[" * 999, b'"type": "end",', b"9" * 5_000)


@TRIES
@given(content=mutated(MESSAGE, TOKENS) | st.binary(max_size=20))
def test_a_message_of_a_websocket_is_understood_or_refused(content: bytes) -> None:
    with suppress(ValidationError):  # any other error fails the test
        message = CLIENT_MESSAGE.validate_json(content)
        assert message.type in ("start", "text", "flush", "cancel", "end")
