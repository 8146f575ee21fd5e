"""What is published of the families beside their tensors, in numbers: ids, layouts and rules.

Nothing here is taken from the served families, so that these can be compared with it.
"""

from __future__ import annotations

import dataclasses

from engine_adapter.id_ranges import Stream, TextRange
from engine_adapter.layout import Layout, Segment
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import StreamSpec

BAGPIPER = StreamSpec(
    family="bagpiper",
    vocab_size=160392,
    streams=(
        Stream(152193, 1024, pad_id=152192, delay=0),
        Stream(153218, 1024, pad_id=153217, delay=1),
        Stream(154243, 1024, pad_id=154242, delay=2),
        Stream(155268, 1024, pad_id=155267, delay=3),
        Stream(156293, 1024, pad_id=156292, delay=4),
        Stream(157318, 1024, pad_id=157317, delay=5),
        Stream(158343, 1024, pad_id=158342, delay=6),
        Stream(159368, 1024, pad_id=159367, delay=7),
    ),
    text=TextRange(256, 151936, end_ids=(2, 3), min_tokens=1),
    audio_begin=8,
    text_to_audio=(3, 6, 8),
    audio_end_ids=(2, 3),
    min_frames=20,
    boundary="sampled",
    head_bias="auxiliary",
    pad_embedding="zero",
    unconditional="zeros",
    cfg_scale=3.0,
    speech_output="audio",
    prompts={
        "audio": (1, 5, 7, "text", 2, 6),
        "text": (1, 5, 7, "text", 2, 6, 7),
        "text+audio": (1, 5, 7, "text", 2, 6, 7),
    },
    instructed=(1, 4, 7, "instructions", 2, 5, 7, "text", 2, 6),
    sampling={"text": SamplingDefaults(0.6, 20, 1.0), "audio": SamplingDefaults(0.8, 20, 1.0)},
    conversation=Layout(
        begin=(1,),
        segments=(
            Segment("system", "text", (4, 7), closes=(2,)),
            Segment("user", "text", (5, 7), closes=(2,)),
            Segment("user", "audio", (5, 8), closes=(2,), embedded=True),
            Segment("assistant", "text", (6, 7), closes=(2,)),
            Segment("assistant", "audio", (6, 8), drain=7, closes=(2,)),
        ),
        answers={"audio": (6,), "text": (6, 7), "text+audio": (6, 7)},
        same_role_closes=(3,),
    ),
    transcription=Layout(
        begin=(1,),
        segments=(Segment("user", "audio", (5, 8), closes=(2,), embedded=True),),
        answers={"text": (6, 7)},
    ),
)
"""The pretrained checkpoint."""

BAGPIPER_TTS = dataclasses.replace(
    BAGPIPER,
    speech_output="text+audio",
    min_frames=1,
    instructed=(1, 4, 7, "instructions", 2, 5, 7, "text", 2, 6, 7),
)
"""The one that was fine-tuned for speech: it plans in text, and then speaks."""

_SSL_AND_CODEC = (
    Stream(256, 5000, pad_id=0, delay=0),
    Stream(5256, 1024, pad_id=0, delay=1),
    Stream(6280, 1024, pad_id=0, delay=2),
    Stream(7304, 1024, pad_id=0, delay=3),
    Stream(8328, 1024, pad_id=0, delay=4),
    Stream(9352, 1024, pad_id=0, delay=5),
    Stream(10376, 1024, pad_id=0, delay=6),
    Stream(11400, 1024, pad_id=0, delay=7),
    Stream(12424, 1024, pad_id=0, delay=8),
)

OPUSLM = StreamSpec(
    family="opuslm",
    vocab_size=113870,
    streams=_SSL_AND_CODEC,
    text=TextRange(13448, 100352, end_ids=(5,), min_tokens=1),
    audio_begin=34,
    text_to_audio=(),
    audio_end_ids=(5,),
    min_frames=1,
    boundary="forced",
    drain_id=0,
    head_bias="all",
    pad_embedding="sum",
    codec_first_stream=1,
    prompts={
        "audio": (5, 82, 35, "text", 0, 0, 0, 0, 0, 0, 0, 0),
        "text": (5, 64, "text"),
    },
    sampling={"text": SamplingDefaults(1.0, 20, 1.0), "audio": SamplingDefaults(0.8, 30, 1.0)},
    transcription=Layout(
        begin=(5, 80),
        segments=(Segment("user", "audio", (34,), ends=(34,), drain=8),),
        answers={"text": (35,)},
    ),
    cloning=Layout(
        begin=(5, 81),
        segments=(
            Segment("user", "text", (35,), drain=8),
            Segment("system", "speaker", (37,), drain=8, frames=500),
        ),
        answers={"audio": ()},
    ),
)

OPUSLM_DIALOGUE = StreamSpec(
    family="opuslm-dialogue",
    vocab_size=62670,
    streams=_SSL_AND_CODEC,
    text=TextRange(13448, 49152, end_ids=(5,), min_tokens=1),
    audio_begin=34,
    text_to_audio=(0, 0, 0, 0, 0, 0, 0, 0, 10, 34),
    audio_end_ids=(5,),
    min_frames=3,
    boundary="forced",
    drain_id=0,
    head_bias="all",
    pad_embedding="sum",
    codec_first_stream=1,
    prompts={
        "audio": (5, 89, 10, 35, "text", 0, 0, 0, 0, 0, 0, 0, 0, 10),
        "text": (5, 88, 9, 35, "text", 0, 0, 0, 0, 0, 0, 0, 0, 10, 35),
        "text+audio": (5, 89, 9, 35, "text", 0, 0, 0, 0, 0, 0, 0, 0, 10, 35),
    },
    sampling={"text": SamplingDefaults(1.0, 20, 1.0), "audio": SamplingDefaults(0.8, 30, 1.0)},
    conversation=Layout(
        begin=(5, 89),
        silent_begin=(5, 88),
        segments=(
            Segment("system", "speaker", (8, 37), drain=8, frames=500),
            Segment("user", "text", (9, 35), drain=8),
            Segment("user", "audio", (9, 34), drain=8),
            Segment("assistant", "text", (10, 35), drain=8),
            Segment("assistant", "audio", (10, 34), drain=8),
        ),
        answers={"text": (10, 35), "text+audio": (10, 35)},
    ),
    cloning=Layout(
        begin=(5, 89),
        segments=(
            Segment("system", "speaker", (8, 37), drain=8, frames=500),
            Segment("assistant", "text", (10, 35), drain=8),
        ),
        answers={"audio": (10,)},
    ),
)

PUBLISHED = {spec.family: spec for spec in (BAGPIPER, OPUSLM, OPUSLM_DIALOGUE)}
