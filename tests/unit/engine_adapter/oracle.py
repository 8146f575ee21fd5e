"""docs/generation.md, "Phases" and "Codes", once more: one request, one row at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from engine_adapter.spec import Output, StreamSpec

MOST_ROWS = 128  # that a request here may generate


@dataclass(frozen=True)
class Ask:
    """A request, its limits, and how often it wants to end."""

    output: Output
    prompt_rows: int
    room: int
    max_frames: int | None = None
    max_text_tokens: int | None = None
    seed: int = 0
    end_rate: float = 0.1


@dataclass
class Answer:
    """What a request wrote."""

    rows: list[list[int]] = field(default_factory=list)
    text: list[int] = field(default_factory=list)
    codes: list[list[int]] = field(default_factory=list)
    reason: str = "stop"


class Sampler(Protocol):
    """Ids for the row that is number ``step`` of the request."""

    def text(self, step: int, end_allowed: bool) -> int: ...

    def audio(self, step: int, stream: int, end_allowed: bool) -> int: ...


@dataclass(frozen=True)
class Draws:
    """A stand-in for a model: every id is a function of the request's seed."""

    spec: StreamSpec
    ask: Ask

    def text(self, step: int, end_allowed: bool) -> int:
        text, (ends, which) = self.spec.text, self._chances(step, 0)
        assert text is not None
        if end_allowed and ends < self.ask.end_rate:
            return text.end_ids[int(which * len(text.end_ids))]
        return text.first_id + int(which * text.size)

    def audio(self, step: int, stream: int, end_allowed: bool) -> int:
        spec, (special, which) = self.spec, self._chances(step, stream)
        of = spec.streams[stream]
        if stream == 0 and end_allowed and special < self.ask.end_rate:
            return spec.audio_end_ids[int(which * len(spec.audio_end_ids))]
        if spec.boundary == "sampled" and special > 0.7:
            return of.pad_id
        return of.first_id + int(which * of.size)

    def anything(self, step: int, stream: int) -> int:
        return int(self._chances(step, stream)[1] * self.spec.vocab_size)

    def _chances(self, step: int, stream: int) -> list[float]:
        return _uniform(self.ask.seed)[step][stream]


@lru_cache(maxsize=32)
def _uniform(seed: int) -> list[list[list[float]]]:
    return np.random.default_rng(seed).random((MOST_ROWS, 9, 2)).tolist()


def least_rows(spec: StreamSpec, output: Output) -> int:
    """Rows of the shortest answer that may end with a whole frame."""
    if output == "text":
        return 1
    bridge = 1 if output == "audio" else len(spec.text_to_audio)
    return bridge + audio_rows(spec, 1 if spec.boundary == "forced" else 1 + spec.max_delay)


def audio_rows(spec: StreamSpec, end: int) -> int:
    """Audio rows of an answer whose end id is at row ``end``."""
    return 1 + (max(end, end + spec.max_delay - 1) if spec.boundary == "forced" else end)


def answer(spec: StreamSpec, ask: Ask, draws: Sampler | None = None) -> Answer:
    """What the definition says a request writes that is given these samples."""
    result, draws = Answer(), draws or Draws(spec, ask)
    if "text" in ask.output:
        _text(spec, ask, draws, result)
    if "audio" in ask.output:
        bridge = spec.text_to_audio if ask.output == "text+audio" else (spec.audio_begin,)
        result.rows += [_alone(spec, forced) for forced in bridge]
        _audio(spec, ask, draws, result)
    return result


def _alone(spec: StreamSpec, first: int) -> list[int]:
    return [first] + [0] * (spec.num_streams - 1)


def _text(spec: StreamSpec, ask: Ask, draws: Sampler, result: Answer) -> None:
    assert spec.text is not None
    most = ask.room - ask.prompt_rows  # text ids that leave room for what must follow
    if ask.output == "text+audio":
        most -= least_rows(spec, ask.output)
    if ask.max_text_tokens is not None:
        most = min(most, ask.max_text_tokens)
    while True:
        written = len(result.text)
        if ask.output == "text+audio" and written == most:
            result.reason = "length"
            return
        sampled = draws.text(len(result.rows), written >= spec.text.min_tokens)
        if sampled in spec.text.end_ids:
            if ask.output == "text":
                result.rows.append(_alone(spec, sampled))
            return
        result.rows.append(_alone(spec, sampled))
        result.text.append(sampled)
        if ask.output == "text" and written + 1 == most:
            result.reason = "length"
            return


def _audio(spec: StreamSpec, ask: Ask, draws: Sampler, result: Answer) -> None:
    begin, forced, delays = len(result.rows), spec.boundary == "forced", spec.delays
    left = ask.room - ask.prompt_rows - begin
    last = max(end for end in range(left) if audio_rows(spec, end) <= left)
    if ask.max_frames is not None:
        last = min(last, ask.max_frames + (0 if forced else spec.max_delay))
    end, t = None, 0
    while end is None or t < audio_rows(spec, end):
        step = len(result.rows)
        row = [draws.audio(step, s, t >= spec.min_frames) for s in range(spec.num_streams)]
        if end is not None:
            row[0] = spec.drain_id
        elif t == last:
            row[0], result.reason = spec.audio_end_ids[0], "length"
        if end is None and row[0] in spec.audio_end_ids:
            end = t
        for s in range(1, spec.num_streams):
            if forced and not delays[s] <= t < (t + 1 if end is None else end) + delays[s]:
                row[s] = spec.streams[s].pad_id
        result.rows.append(row)
        t += 1
    for frame in range(end if forced else max(0, end - spec.max_delay)):
        ids = [result.rows[begin + frame + d][s] for s, d in enumerate(delays)]
        result.codes.append(
            [
                0 if i == stream.pad_id else i - stream.first_id
                for i, stream in zip(ids, spec.streams, strict=True)
            ]
        )
