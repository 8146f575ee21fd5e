"""The replica's side of an answer to several parts: text and audio in, text and audio out."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import numpy as np

from deployments.audio.joining import Joiner
from deployments.calls.answer_messages import (
    AnswerCall,
    Answered,
    AnswerEvent,
    CallPart,
    Clip,
    Codes,
    TextPiece,
)
from deployments.calls.messages import Accepted, Refused
from deployments.metrics.answers import AnswerMeter
from deployments.metrics.clips import ClipMeter
from deployments.replica.vocoding import Vocoding
from engine_adapter import conversation
from engine_adapter.conversation import Part
from engine_adapter.engine import SpeechEngine
from engine_adapter.request import (
    FinishReason,
    RequestError,
    ResolvedRequest,
    SpeechRequest,
    draw_seed,
)
from vocoder_service.busy import EncoderBusy

if TYPE_CHECKING:
    from vocoder_service.clips import EncoderLimits

# Fields of the engine's requests that the API does not have.
_PROMPT_FIELDS = (conversation.PARAM, "prompt_ids", "embedded", "text")


class Answerer:
    """Has an engine, an encoder and a vocoder answer requests.

    Attributes:
        clips: that are encoded.
    """

    def __init__(
        self,
        engine: SpeechEngine,
        vocoder: Any,
        vocoding: Vocoding,
        limits: EncoderLimits | None,
    ) -> None:
        """
        Args:
            vocoder: handle of a ``VocoderActor``, which has an encoder if the model takes audio.
            limits: of that encoder.
        """
        self._engine = engine
        self._vocoder = vocoder
        self._vocoding = vocoding
        self._codec = vocoding.codec
        self.clips = ClipMeter()
        self._limits = limits

    async def answer(self, call: AnswerCall) -> AsyncGenerator[AnswerEvent, None]:
        """``Accepted``, text and PCM as they are made, ``Answered``; or ``Refused`` before any.

        Raises:
            GenerationError: the engine could not finish.
            VocoderError: audio could not be decoded.
        """
        began = time.monotonic()
        seed = draw_seed() if call.seed is None else call.seed
        yield Accepted(seed, self._codec.sample_rate)
        try:
            self._require_room(call)
            parts = [await self._part(part, call.trace) for part in call.parts]
            resolved = self._resolve(call, parts, seed)
        except EncoderBusy as error:
            yield Refused(429, str(error))
            return
        except RequestError as error:
            yield _refusal(call, error)
            return
        prompt_frames = sum(len(part.value) for part in parts if part.content != "text")
        meter = AnswerMeter(
            call.task,
            guided=resolved.guided,
            sample_rate=self._codec.sample_rate,
            trace=call.trace,
            began=began,
        )
        generated = self._generate(call, resolved, prompt_frames, meter)
        try:
            async for event in generated:
                yield event
            meter.completed()
        finally:
            await generated.aclose()
            meter.closed()

    async def encode(self, samples: Any) -> Codes:
        """Codes of a clip.

        Raises:
            EncoderBusy: too many clips are waiting.
        """
        codes: Codes = await self._encoded(samples)
        return codes

    async def _encoded(self, samples: Any, trace: str | None = None) -> Any:
        with self.clips.clip(len(samples) / self._codec.sample_rate, trace):
            return await self._vocoder.encode.remote(samples)

    def _require_room(self, call: AnswerCall) -> None:
        """Before anything is encoded, which takes time and memory.

        Raises:
            RequestError: the model has no encoder, a clip is longer than it can encode, or the
                audio alone is longer than a context.
        """
        clips = [part.value.samples for part in call.parts if isinstance(part.value, Clip)]
        if not clips:
            return
        if self._limits is None:
            raise RequestError(conversation.PARAM, "the model lacks the encoder of its audio")
        per_row, longest = self._limits
        rate, most = self._codec.sample_rate, self._engine.max_length
        if longest is not None and max(map(len, clips)) > longest:
            raise RequestError(
                conversation.PARAM,
                f"a piece of audio is longer than the model can hear at once: {longest / rate:g} s",
            )
        if sum(-(-len(samples) // per_row) for samples in clips) >= most:
            seconds = most * per_row / rate
            raise RequestError(
                conversation.PARAM, f"there is more audio than the model can hear: {seconds:g} s"
            )

    async def _part(self, part: CallPart, trace: str | None) -> Part:
        value: Any = part.value
        if isinstance(value, str):
            value = self._engine.tokenizer.encode(value)
        elif isinstance(value, Clip):
            value = await self._encoded(value.samples, trace)
        return Part(part.role, part.content, value)

    def _resolve(self, call: AnswerCall, parts: list[Part], seed: int) -> ResolvedRequest:
        spec = self._engine.spec
        layout = spec.conversation if call.task == "conversation" else spec.transcription
        if layout is None:
            raise RequestError("model", f"{spec.family} cannot do this: {call.task}")
        prompt = conversation.prompt(spec, layout, call.output, parts)
        return self._engine.prepare(
            SpeechRequest(
                prompt_ids=prompt.rows.tolist(),
                embedded=prompt.embedded,
                output=call.output,
                cfg_scale=call.cfg_scale,
                seed=seed,
                temperature=call.temperature,
                top_k=call.top_k,
                top_p=call.top_p,
                max_text_tokens=call.max_tokens if "text" in call.output else None,
                max_frames=call.max_tokens if "audio" in call.output else None,
            )
        )

    async def _generate(
        self,
        call: AnswerCall,
        resolved: ResolvedRequest,
        prompt_frames: int,
        meter: AnswerMeter,
    ) -> AsyncGenerator[AnswerEvent, None]:
        reason: FinishReason | None = None
        text_tokens = frames = 0
        kept: list[Codes] = []
        speaks = "audio" in call.output
        joiner = Joiner(self._codec.sample_rate)
        sound = self._vocoding.stream(call.request_id, call.trace)
        chunks = self._engine.stream(resolved, sound.id)
        try:
            if speaks:
                await sound.open()
            async for chunk in chunks:
                meter.rows(len(chunk.rows))
                text_tokens += self._text_ids(chunk.rows)
                if chunk.text:
                    yield TextPiece(chunk.text)
                reason, codes = chunk.finish_reason, chunk.codes
                if call.max_tokens is not None:
                    room = call.max_tokens - text_tokens - frames
                    if len(codes) > room:
                        reason, codes = "length", codes[:room]
                frames += len(codes)
                kept.append(codes)
                if speaks and (pcm := joiner.piece(await sound.add(codes))):
                    meter.audio(pcm)
                    yield pcm
                if reason is not None:
                    break
            meter.utterance_ended()
            if speaks and (pcm := joiner.piece(await sound.finish()) + joiner.finish()):
                meter.audio(pcm)
                yield pcm
        finally:
            if speaks:
                sound.abort()
            await chunks.aclose()
        assert reason is not None, "the engine's last chunk has a reason"
        yield Answered(
            finish_reason=reason,
            prompt_tokens=len(resolved.prompt),
            prompt_frames=prompt_frames,
            text_tokens=text_tokens,
            frames=frames,
            codes=np.concatenate(kept),
        )

    def _text_ids(self, rows: Codes) -> int:
        text = self._engine.spec.text
        if text is None:
            return 0
        inside = (rows[:, 0] >= text.first_id) & (rows[:, 0] < text.end)
        return int(np.count_nonzero(inside))


def _refusal(call: AnswerCall, error: RequestError) -> Refused:
    param = call.param if error.param in _PROMPT_FIELDS else error.param
    if param in ("max_text_tokens", "max_frames"):
        param = "max_completion_tokens"
    message = str(error).removeprefix(f"{error.param}: ")
    return Refused(400, f"{param}: {message}", param)
