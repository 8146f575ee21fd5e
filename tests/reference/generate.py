"""A request, generated row by row (docs/generation.md, "Phases" and "Guidance")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from engine_adapter.spec import Output, StreamSpec
from tests.reference.margin import margin
from tests.reference.model import Context, Model, PromptRow, Row
from tests.reference.sample import Sampling, draw

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class ReferenceRequest:
    """A request in ids.

    Attributes:
        prompt: rows of ``S`` ids; see :func:`plain_rows` for plain ids and
            :func:`text_prompt` for a text. A row that is heard is its embedding.
        output: what to write.
        cfg_scale: ``w`` of the guidance; 1 is none, ``None`` the family's default.
        unconditional_ids: guidance prompt as plain ids; ``None`` for the family's.
        seed: of the noise, ``0 <= seed < 2**63``.
        temperature: of text and audio alike; ``None`` for the family's default of each
            modality. The same holds for ``top_k`` and ``top_p``.
        top_k: see ``temperature``.
        top_p: see ``temperature``.
        max_frames: frames at most, at least 1.
        max_text_tokens: text ids at most, at least 1.
    """

    prompt: Sequence[PromptRow]
    output: Output = "audio"
    cfg_scale: float | None = None
    unconditional_ids: Sequence[int] | None = None
    seed: int = 0
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_frames: int = 1024
    max_text_tokens: int = 1024


@dataclass(frozen=True)
class ReferenceResult:
    """What a request generated.

    Attributes:
        raw_ids: every generated row, ``[rows][S]`` ids: text, bridge, audio and tail.
        codes: the frames, ``[T][S]``, code indices of every stream, those below
            ``codec_first_stream`` included.
        text_ids: model ids of the text, the end id excluded.
        finish_reason: ``stop`` or ``length``.
        cfg_scale: ``w`` of the guidance that the audio had; 1 is none.
        margin: the smallest margin of any decision (``tests.reference.margin``).
    """

    raw_ids: list[list[int]]
    codes: list[list[int]]
    text_ids: list[int]
    finish_reason: FinishReason
    cfg_scale: float
    margin: float


class Reference:
    """Generates requests of one model directory."""

    def __init__(self, model: str | Path | Model, max_model_len: int | None = None) -> None:
        """Loads the model.

        Args:
            model: a model directory, or what was made of other files.
            max_model_len: rows of a request at most; ``None`` for as many as the
                backbone has positions for.

        Raises:
            CheckpointError: the directory is incomplete.
        """
        self._model = model if isinstance(model, Model) else Model(model)
        self._max_model_len = max_model_len or self._model.max_model_len

    @property
    def spec(self) -> StreamSpec:
        """The model's spec."""
        return self._model.spec

    @torch.inference_mode()
    def generate(self, request: ReferenceRequest) -> ReferenceResult:
        """Generates one request.

        Raises:
            ValueError: the family does not write this output, guidance lacks an
                unconditional prompt, or the prompt leaves no room.
        """
        return _Generation(self._model, self._max_model_len, request).run()


def plain_rows(ids: Sequence[int], streams: int) -> list[Row]:
    """Rows of plain ids: 0 on streams 1 and up."""
    return [(i, *[0] * (streams - 1)) for i in ids]


def text_prompt(
    spec: StreamSpec, output: Output, text: Sequence[int], voice: str | None = None
) -> list[Row]:
    """The family's prompt around a text.

    Args:
        text: model ids.
        voice: its name; ``None`` for the family's first, if it has any.
    """
    ids: list[int] = []
    for part in spec.prompts[output]:
        if part == "text":
            ids += text
        elif part == "voice":
            ids += spec.voices[voice or next(iter(spec.voices))]
        else:
            ids.append(int(part))
    return plain_rows(ids, spec.num_streams)


class _Generation:
    """A request on its way. One method per phase, in the order they happen."""

    def __init__(self, model: Model, max_model_len: int, request: ReferenceRequest) -> None:
        spec = model.spec
        if request.output not in spec.prompts:
            raise ValueError(f"{spec.family} does not write {request.output!r}")
        scale = spec.cfg_scale if request.cfg_scale is None else request.cfg_scale
        if scale < 1:
            raise ValueError(f"cfg_scale is {scale}, below 1")
        self._scale = scale if "audio" in request.output else 1.0
        self._model, self._spec, self._request = model, spec, request
        self._room = max_model_len
        self._conditional = model.context()
        self._conditional.append(request.prompt)
        self._unconditional: Context | None = None
        self._rows: list[list[int]] = []
        self._text: list[int] = []
        self._ended_early = False
        self._margin = 1.0  # logits; firmer decisions are not told apart
        # Rows of the forced tail, counted from the one with the end id.
        self._tail = max(1, max(spec.delays)) if spec.boundary == "forced" else 1
        # Audio rows before the end row are the frames and, here, the warm-up.
        self._warm_up = 0 if spec.boundary == "forced" else max(spec.delays)

    def run(self) -> ReferenceResult:
        codes: list[list[int]] = []
        if "text" in self._request.output:
            self._write_text()
        if "audio" in self._request.output:
            self._write_bridge()
            begin = len(self._rows)
            frames = self._write_audio()
            codes = self._codes(begin, frames)
        reason: FinishReason = "length" if self._ended_early else "stop"
        return ReferenceResult(self._rows, codes, self._text, reason, self._scale, self._margin)

    def _write_text(self) -> None:
        text = self._spec.text
        assert text is not None  # or the family would not write text
        audio_follows = self._request.output == "text+audio"
        room = self._room - self._conditional.length
        if audio_follows:  # the shortest audio
            room -= len(self._spec.text_to_audio) + self._warm_up + 1 + self._tail
        limit = min(self._request.max_text_tokens, self._at_least_one(room))
        while True:
            if len(self._text) == limit:
                self._ended_early = True
                return
            logits = self._model.text_logits(self._conditional.hidden())
            masked = text.end_ids if len(self._text) < text.min_tokens else ()
            sampled = self._sample(logits, self._model.text_ids, masked, "text", stream=0)
            if sampled in text.end_ids:
                if not audio_follows:  # else the bridge opens in this row's place
                    self._write([sampled])
                return
            self._write([sampled])
            self._text.append(sampled)

    def _write_bridge(self) -> None:
        after_text = self._request.output == "text+audio"
        bridge = self._spec.text_to_audio if after_text else (self._spec.audio_begin,)
        before_audio_begin = self._conditional.length + len(bridge) - 1
        for forced in bridge:
            self._write([forced])
        if self._scale > 1:
            self._unconditional = self._model.context()
            ids = [*self._unconditional_ids(before_audio_begin), self._spec.audio_begin]
            self._unconditional.append(plain_rows(ids, self._spec.num_streams))

    def _unconditional_ids(self, before_audio_begin: int) -> Sequence[int]:
        if self._request.unconditional_ids is not None:
            return self._request.unconditional_ids
        if self._spec.unconditional == "zeros":
            return [0] * before_audio_begin
        if self._spec.unconditional == "prompt":
            return self._spec.unconditional_prompt
        raise ValueError(f"{self._spec.family}: guidance needs unconditional_ids")

    def _write_audio(self) -> int:
        """Writes all audio rows; returns the number of frames."""
        spec = self._spec
        used = max(c.length for c in (self._conditional, self._unconditional) if c is not None)
        room = self._at_least_one(self._room - used - self._warm_up - self._tail)
        last = min(self._request.max_frames, room) + self._warm_up  # the latest end row
        end: int | None = None
        row = 0
        while end is None or row < end + self._tail:
            if end is not None:
                primary = spec.drain_id
            elif row == last:
                primary = spec.audio_end_ids[0]
                self._ended_early = True
            else:
                primary = self._sample_audio(0, row)
            if end is None and primary in spec.audio_end_ids:
                end = row
            auxiliary = [
                self._sample_audio(s, row) if self._speaks(s, row, end) else spec.streams[s].pad_id
                for s in range(1, spec.num_streams)
            ]
            self._write([primary, *auxiliary])
            row += 1
        return max(0, end - self._warm_up)

    def _speaks(self, stream: int, row: int, end: int | None) -> bool:
        """Whether an auxiliary stream is sampled in an audio row, rather than padded."""
        if self._spec.boundary == "sampled":
            return True
        delay = self._spec.streams[stream].delay
        return delay <= row and (end is None or row < end + delay)

    def _sample_audio(self, stream: int, row: int) -> int:
        logits = self._model.audio_logits(self._conditional.hidden(), stream)
        if self._unconditional is not None:
            w = self._scale
            unguided = self._model.audio_logits(self._unconditional.hidden(), stream)
            logits = w * logits + (1 - w) * unguided
        mask_end = stream == 0 and row < self._spec.min_frames
        masked = self._spec.audio_end_ids if mask_end else ()
        return self._sample(logits, self._model.audio_ids[stream], masked, "audio", stream)

    def _sample(
        self,
        logits: Tensor,
        ids: Tensor,
        masked: Sequence[int],
        modality: Literal["text", "audio"],
        stream: int,
    ) -> int:
        if masked:
            allowed = ~torch.isin(ids, torch.tensor(masked))
            logits, ids = logits[allowed], ids[allowed]
        sampling = self._sampling(modality)
        decision = draw(logits, ids, sampling, self._request.seed, len(self._rows), stream)
        self._margin = margin(logits, decision, sampling, at_most=self._margin)
        return int(ids[decision.index])

    def _sampling(self, modality: Literal["text", "audio"]) -> Sampling:
        request, default = self._request, self._spec.sampling[modality]
        return Sampling(
            default.temperature if request.temperature is None else request.temperature,
            default.top_k if request.top_k is None else request.top_k,
            default.top_p if request.top_p is None else request.top_p,
        )

    def _write(self, row: list[int]) -> None:
        row = row + [0] * (self._spec.num_streams - len(row))
        self._rows.append(row)
        self._conditional.append([row])
        if self._unconditional is not None:
            self._unconditional.append([row])

    def _codes(self, begin: int, frames: int) -> list[list[int]]:
        def code(frame: int, s: int) -> int:
            stream = self._spec.streams[s]
            sampled = self._rows[begin + frame + stream.delay][s]
            return 0 if sampled == stream.pad_id else sampled - stream.first_id

        return [[code(t, s) for s in range(self._spec.num_streams)] for t in range(frames)]

    def _at_least_one(self, room: int) -> int:
        if room < 1:
            raise ValueError(f"the prompt leaves no room in {self._room} rows")
        return room
