"""Families that nobody serves: small, and odd in every way a spec allows."""

from __future__ import annotations

from hypothesis import strategies as st

from engine_adapter.families import FAMILIES
from engine_adapter.id_ranges import Stream, TextRange
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import OUTPUTS, Output, StreamSpec

AUDIO_BEGIN, DRAIN, END, OTHER_END, TURN, ANSWER = 1, 2, 3, 4, 5, 6
TEXT_FIRST, STREAMS_FIRST = 16, 32


def small_spec(
    delays: tuple[int, ...] = (0, 1, 2),
    boundary: str = "forced",
    *,
    sizes: tuple[int, ...] | None = None,
    text_to_audio: tuple[int, ...] = (TURN, ANSWER, AUDIO_BEGIN),
    audio_end_ids: tuple[int, ...] = (END, OTHER_END),
    text_end_ids: tuple[int, ...] = (END,),
    min_frames: int = 1,
    min_tokens: int = 1,
    head_bias: str = "all",
    unconditional: str = "zeros",
) -> StreamSpec:
    """A family with a few codes per stream that writes everything.

    Each stream's ids are its pad and its codes. With forced boundaries the pad is 0 on
    every other stream, as in families whose streams share one pad.
    """
    first, streams = STREAMS_FIRST, []
    for index, delay in enumerate(delays):
        size = sizes[index] if sizes else 3 + index % 2
        pad = 0 if boundary == "forced" and index % 2 else first
        streams.append(Stream(first + 1, size, pad, delay))
        first += 1 + size
    prompts: dict[Output, tuple[int | str, ...]] = dict.fromkeys(OUTPUTS, (TURN, "text"))
    return StreamSpec(
        family="small",
        vocab_size=first,
        streams=tuple(streams),
        audio_begin=AUDIO_BEGIN,
        audio_end_ids=audio_end_ids,
        boundary=boundary,  # type: ignore[arg-type]
        head_bias=head_bias,  # type: ignore[arg-type]
        pad_embedding="sum",
        prompts=prompts,
        sampling={"text": SamplingDefaults(0.7, 5), "audio": SamplingDefaults(0.9, 3, 0.95)},
        text=TextRange(TEXT_FIRST, 8, text_end_ids, min_tokens),
        text_to_audio=text_to_audio,
        min_frames=min_frames,
        drain_id=DRAIN,
        unconditional=unconditional,  # type: ignore[arg-type]
        unconditional_prompt=(TURN,) if unconditional == "prompt" else (),
    )


@st.composite
def small_specs(draw: st.DrawFn) -> StreamSpec:
    """Any delays, one stream or several, both boundaries, long and short bridges."""
    later = draw(st.lists(st.integers(0, 5), max_size=3))
    return small_spec(
        (0, *later),
        draw(st.sampled_from(["forced", "sampled"])),
        text_to_audio=draw(
            st.sampled_from([(AUDIO_BEGIN,), (END, AUDIO_BEGIN), (TURN, ANSWER, AUDIO_BEGIN)])
        ),
        audio_end_ids=draw(st.sampled_from([(END,), (OTHER_END, END)])),
        text_end_ids=draw(st.sampled_from([(END,), (END, TURN)])),
        min_frames=draw(st.integers(1, 4)),
        min_tokens=draw(st.integers(0, 3)),
    )


# The real families come first, so that a failing example shrinks to one of them.
specs = st.sampled_from(list(FAMILIES.values())) | small_specs()
