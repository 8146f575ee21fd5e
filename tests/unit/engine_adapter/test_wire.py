"""What the front end sends is what the engine core reads."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_adapter.families import FAMILIES
from engine_adapter.request import MAX_SEED, SpeechRequest, resolve
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.wire import (
    KEY,
    WireRequest,
    pack_auxiliary,
    prompt_salt,
    unpack_auxiliary,
)

DEMO = FAMILIES["demo"]


def sent(request: WireRequest) -> WireRequest:
    """Through msgpack, as vLLM sends ``extra_args``."""
    message = msgspec.msgpack.encode(request.to_extra_args())
    return WireRequest.from_extra_args(msgspec.msgpack.decode(message))


def wire(room: int = 99, **fields: Any) -> WireRequest:
    fields.setdefault("prompt_ids", [1, 20])
    return WireRequest.of(resolve(SpeechRequest(**fields), DEMO, None), room)


@given(
    seed=st.integers(0, MAX_SEED),
    scale=st.floats(1, 20, width=32),
    temperature=st.floats(0, 100),
    top_k=st.integers(0, 2000),
    top_p=st.floats(0.01, 1),
    limit=st.none() | st.integers(1, 9999),
)
def test_nothing_is_lost_on_the_way(
    seed: int, scale: float, temperature: float, top_k: int, top_p: float, limit: int | None
) -> None:
    request = wire(
        seed=seed,
        cfg_scale=scale,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        max_frames=limit,
        room=77,
    )
    read = sent(request)
    assert (read.output, read.seed, read.cfg_scale, read.room) == ("audio", seed, scale, 77)
    assert (read.max_frames, read.max_text_tokens) == (limit, None)
    assert read.sampling_of("audio") == SamplingDefaults(temperature, top_k, top_p)
    assert read.sampling_of("text") == SamplingDefaults(temperature, top_k, top_p)
    assert read.guided == (scale > 1)
    assert read.leader is None


def test_prompts_of_all_streams_are_kept() -> None:
    rows = [[s.first_id + 3 for s in DEMO.streams], [s.end - 1 for s in DEMO.streams]]
    read = sent(wire(prompt_ids=rows, unconditional_ids=rows[::-1], cfg_scale=2.0))
    resolved = resolve(SpeechRequest(prompt_ids=rows), DEMO, None).prompt
    auxiliary = unpack_auxiliary(read.auxiliary, DEMO.num_streams)
    assert auxiliary is not None
    assert auxiliary.tolist() == resolved[:, 1:].tolist()
    unconditional = unpack_auxiliary(read.unconditional_auxiliary, DEMO.num_streams)
    assert unconditional is not None
    assert unconditional.tolist() == resolved[::-1, 1:].tolist()
    assert read.unconditional == resolved[::-1, 0].tolist()


def test_plain_prompts_send_no_auxiliary_ids() -> None:
    read = sent(wire(cfg_scale=2.0))
    assert read.auxiliary == read.unconditional_auxiliary == b""
    assert read.unconditional == [1]


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_no_unconditional_prompt_is_sent_where_there_is_none(scale: float) -> None:
    request = SpeechRequest(prompt_ids=[1, 5], cfg_scale=scale)
    read = sent(WireRequest.of(resolve(request, FAMILIES["bagpiper"], None), room=50))
    assert read.unconditional is None


def test_an_unconditional_row_names_its_leader() -> None:
    row = WireRequest("audio", 3, 2.0, 50, {"audio": (1.0, 0, 1.0)}, leader="a")
    assert sent(row).leader == "a"


def test_reading_what_was_read_changes_nothing() -> None:
    once = sent(wire(cfg_scale=3.0))
    assert sent(once) == once


@pytest.mark.parametrize("extra_args", [None, {}, {"other": 1}])
def test_a_request_from_elsewhere_is_refused(extra_args: dict[str, Any] | None) -> None:
    with pytest.raises(ValueError, match="SpeechEngine"):
        WireRequest.from_extra_args(extra_args)


def test_the_message_has_one_key() -> None:
    assert list(wire().to_extra_args()) == [KEY]


@given(streams=st.integers(1, 5), data=st.data())
def test_unpack_undoes_pack(streams: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    values = data.draw(
        st.lists(st.integers(0, 2**20), min_size=count * streams, max_size=count * streams)
    )
    rows = np.array(values, dtype=np.int32).reshape(count, streams)
    auxiliary = unpack_auxiliary(pack_auxiliary(rows), streams)
    assert (auxiliary is None) == (not rows[:, 1:].any())
    if auxiliary is not None:
        assert auxiliary.dtype == np.int32
        assert auxiliary.tolist() == rows[:, 1:].tolist()


def test_prompts_are_salted_by_their_auxiliary_streams() -> None:
    """Stream 0 alone does not tell two prompts with audio apart."""
    one, other = (pack_auxiliary(np.array([[1, code, 0]], dtype=np.int32)) for code in (300, 301))
    assert prompt_salt(one) == prompt_salt(bytes(one))
    assert prompt_salt(one) != prompt_salt(other)
    assert prompt_salt(b"") is None
