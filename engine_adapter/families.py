"""The served families as data. Sources of the layouts: docs/families.md."""

from __future__ import annotations

from engine_adapter.id_ranges import Stream, TextRange
from engine_adapter.layout import Layout, Role, Segment
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import (
    INSTRUCTIONS_SLOT,
    TEXT_SLOT,
    VOICE_SLOT,
    StreamSpec,
)


def _bagpiper() -> StreamSpec:
    first, interval = 152192, 1025  # each interval opens with the stream's pad
    bos, eos, eot, system, user, assistant, text, audio = 1, 2, 3, 4, 5, 6, 7, 8
    turn: tuple[int | str, ...] = (bos, user, text, TEXT_SLOT, eos, assistant)
    heard = Segment("user", "audio", (user, audio), closes=(eos,), embedded=True)
    return StreamSpec(
        family="bagpiper",
        vocab_size=160392,
        streams=tuple(
            Stream(first + interval * s + 1, 1024, pad_id=first + interval * s, delay=s)
            for s in range(8)
        ),
        text=TextRange(256, 151936, end_ids=(eos, eot)),
        audio_begin=audio,
        text_to_audio=(eot, assistant, audio),
        audio_end_ids=(eos, eot),
        boundary="sampled",
        head_bias="auxiliary",
        pad_embedding="zero",
        unconditional="zeros",
        prompts={"audio": turn, "text": (*turn, text), "text+audio": (*turn, text)},
        instructed=(bos, system, text, INSTRUCTIONS_SLOT, eos, *turn[1:]),
        sampling={"text": SamplingDefaults(0.6, 20), "audio": SamplingDefaults(0.8, 20)},
        conversation=Layout(
            begin=(bos,),
            segments=(
                Segment("system", "text", (system, text), closes=(eos,)),
                Segment("user", "text", (user, text), closes=(eos,)),
                heard,
                Segment("assistant", "text", (assistant, text), closes=(eos,)),
                Segment("assistant", "audio", (assistant, audio), drain=7, closes=(eos,)),
            ),
            answers={
                "audio": (assistant,),
                "text": (assistant, text),
                "text+audio": (assistant, text),
            },
            same_role_closes=(eot,),
        ),
        transcription=Layout(begin=(bos,), segments=(heard,), answers={"text": (assistant, text)}),
    )


def _opuslm_streams() -> tuple[Stream, ...]:
    ssl = Stream(256, 5000, pad_id=0, delay=0)
    codec = (Stream(5256 + 1024 * k, 1024, pad_id=0, delay=k + 1) for k in range(8))
    return (ssl, *codec)


_DRAIN = 8
_SEGMENT_PAD = (0,) * _DRAIN  # all-zero rows that let the delayed streams of a segment drain
_SPEAKER_FRAMES = 500


def _opuslm() -> StreamSpec:
    eos, text_bpe, codec_ssl, speaker = 5, 35, 34, 37
    plain_tts, tts, asr, textlm = 82, 81, 80, 64
    return StreamSpec(
        family="opuslm",
        vocab_size=113870,
        streams=_opuslm_streams(),
        text=TextRange(13448, 100352, end_ids=(eos,)),
        audio_begin=codec_ssl,
        audio_end_ids=(eos,),
        boundary="forced",
        head_bias="all",
        pad_embedding="sum",
        codec_first_stream=1,
        prompts={
            "audio": (eos, plain_tts, text_bpe, TEXT_SLOT, *_SEGMENT_PAD),
            "text": (eos, textlm, TEXT_SLOT),
        },
        sampling={"text": SamplingDefaults(1.0, 20), "audio": SamplingDefaults(0.8, 30)},
        transcription=Layout(
            begin=(eos, asr),
            segments=(Segment("user", "audio", (codec_ssl,), ends=(codec_ssl,), drain=_DRAIN),),
            answers={"text": (text_bpe,)},
        ),
        cloning=Layout(
            begin=(eos, tts),
            segments=(
                Segment("user", "text", (text_bpe,), drain=_DRAIN),
                Segment("system", "speaker", (speaker,), drain=_DRAIN, frames=_SPEAKER_FRAMES),
            ),
            answers={"audio": ()},
        ),
    )


def _opuslm_dialogue() -> StreamSpec:
    eos, system, user, assistant, text_bpe, codec_ssl, speaker = 5, 8, 9, 10, 35, 34, 37
    text_dialogue, audio_dialogue = 88, 89
    user_turn: tuple[int | str, ...] = (user, text_bpe, TEXT_SLOT, *_SEGMENT_PAD)
    answer = (assistant, text_bpe)

    def said(role: Role, mark: int) -> tuple[Segment, Segment]:
        return (
            Segment(role, "text", (mark, text_bpe), drain=_DRAIN),
            Segment(role, "audio", (mark, codec_ssl), drain=_DRAIN),
        )

    voice = Segment("system", "speaker", (system, speaker), drain=_DRAIN, frames=_SPEAKER_FRAMES)
    return StreamSpec(
        family="opuslm-dialogue",
        vocab_size=62670,
        streams=_opuslm_streams(),
        text=TextRange(13448, 49152, end_ids=(eos,)),
        audio_begin=codec_ssl,
        text_to_audio=(*_SEGMENT_PAD, assistant, codec_ssl),
        audio_end_ids=(eos,),
        min_frames=3,
        boundary="forced",
        head_bias="all",
        pad_embedding="sum",
        codec_first_stream=1,
        prompts={
            "audio": (eos, audio_dialogue, *answer, TEXT_SLOT, *_SEGMENT_PAD, assistant),
            "text": (eos, text_dialogue, *user_turn, *answer),
            "text+audio": (eos, audio_dialogue, *user_turn, *answer),
        },
        sampling={"text": SamplingDefaults(1.0, 20), "audio": SamplingDefaults(0.8, 30)},
        conversation=Layout(
            begin=(eos, audio_dialogue),
            silent_begin=(eos, text_dialogue),
            segments=(voice, *said("user", user), *said("assistant", assistant)),
            answers={"text": answer, "text+audio": answer},
        ),
        cloning=Layout(
            begin=(eos, audio_dialogue),
            segments=(voice, Segment("assistant", "text", answer, drain=_DRAIN)),
            answers={"audio": (assistant,)},
        ),
    )


def _demo() -> StreamSpec:
    bos, audio, end, drain, rms, slt = 1, 2, 3, 4, 5, 6
    text_first, codec_first, size = 16, 272, 256
    return StreamSpec(
        family="demo",
        vocab_size=codec_first + 8 * size,
        streams=tuple(Stream(codec_first + size * s, size, pad_id=0, delay=s) for s in range(8)),
        text=TextRange(text_first, 256, end_ids=(end,)),
        audio_begin=audio,
        audio_end_ids=(end,),
        boundary="forced",
        drain_id=drain,
        head_bias="all",
        pad_embedding="zero",
        unconditional="prompt",
        unconditional_prompt=(bos,),
        prompts={"audio": (bos, VOICE_SLOT, TEXT_SLOT)},
        voices={"rms": (rms,), "slt": (slt,)},
        sampling={"text": SamplingDefaults(0.8, 30), "audio": SamplingDefaults(0.8, 30)},
    )


FAMILIES: dict[str, StreamSpec] = {
    spec.family: spec for spec in (_bagpiper(), _opuslm(), _opuslm_dialogue(), _demo())
}
