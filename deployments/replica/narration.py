"""The replica's side of one request for speech: its utterances, one after the other, as PCM."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from deployments.audio.joining import Joiner
from deployments.calls.messages import Finished, FirstAudio
from deployments.metrics.answers import AnswerMeter
from deployments.replica.vocoding import Vocoding
from engine_adapter.engine import SpeechEngine
from engine_adapter.request import MAX_SEED, FinishReason, ResolvedRequest


def utterance_seed(seed: int, index: int) -> int:
    """The seed of one utterance of a request: the request's own for the first.

    The others are hashed, so that requests with neighbouring seeds have none in common.
    """
    if index == 0:
        return seed
    digest = hashlib.blake2b(f"{seed}/{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) & MAX_SEED


class _Opening:
    """Tells the first PCM of a request from the others, and measures how it came about."""

    def __init__(self, meter: AnswerMeter) -> None:
        self.meter = meter
        self._began = time.monotonic()
        self._row: float | None = None
        self._vocoder = 0.0
        self._heard = False

    def rows(self, number: int) -> None:
        """The engine has written so many rows."""
        self.meter.rows(number)
        if self._row is None:
            self._row = time.monotonic()

    def waited(self, seconds: float) -> None:
        """For the vocoder, in all so far."""
        self._vocoder = seconds

    def event(self, pcm: bytes) -> bytes | FirstAudio:
        """What to send."""
        self.meter.audio(pcm)
        if self._heard:
            return pcm
        self._heard = True
        assert self._row is not None, "audio is made of rows"
        frames = time.monotonic() - self._row - self._vocoder
        return FirstAudio(pcm, self._row - self._began, frames, self._vocoder)


class Narrator:
    """Has an engine and a vocoder speak the utterances of requests."""

    def __init__(self, engine: SpeechEngine, vocoding: Vocoding) -> None:
        self._engine = engine
        self._vocoding = vocoding

    async def speak(
        self,
        request_id: str,
        utterances: Sequence[ResolvedRequest],
        pauses: Sequence[float],
        max_frames: int | None,
        trace: str | None = None,
    ) -> AsyncGenerator[FirstAudio | bytes | Finished, None]:
        """PCM at the codec's rate, then ``Finished``.

        Args:
            request_id: for logs; need not be unique.
            utterances: at least one.
            pauses: seconds of silence behind each; that of the last one is not heard.
            max_frames: of all utterances together.
            trace: see ``deployments.tracing``.

        Raises:
            GenerationError: the engine could not finish an utterance.
            VocoderError: its audio could not be decoded.
        """
        rate = self._vocoding.codec.sample_rate
        meter = AnswerMeter("speech", guided=utterances[0].guided, sample_rate=rate, trace=trace)
        try:
            events = self._spoken(request_id, utterances, pauses, max_frames, meter)
            async with aclosing(events):
                async for event in events:
                    yield event
            meter.completed()
        finally:
            meter.closed()

    async def _spoken(
        self,
        request_id: str,
        utterances: Sequence[ResolvedRequest],
        pauses: Sequence[float],
        max_frames: int | None,
        meter: AnswerMeter,
    ) -> AsyncGenerator[FirstAudio | bytes | Finished, None]:
        joiner, opening = Joiner(self._vocoding.codec.sample_rate), _Opening(meter)
        reason: FinishReason = "stop"
        frames = prompt_rows = 0
        for index, utterance in enumerate(utterances):
            if max_frames is not None:
                if frames >= max_frames:
                    reason = "length"
                    break
                utterance = replace(utterance, max_frames=max_frames - frames)
            if index > 0 and (pcm := joiner.end_utterance(pauses[index - 1])):
                yield opening.event(pcm)
            prompt_rows += len(utterance.prompt)
            async with aclosing(self._utterance(request_id, utterance, opening)) as events:
                async for event in events:
                    if isinstance(event, Finished):
                        frames += event.output_tokens
                        if event.finish_reason == "length":
                            reason = "length"
                    elif pcm := joiner.piece(event):
                        yield opening.event(pcm)
        if pcm := joiner.finish():
            yield opening.event(pcm)
        yield Finished(reason, prompt_rows, frames)

    async def _utterance(
        self, request_id: str, resolved: ResolvedRequest, opening: _Opening
    ) -> AsyncGenerator[bytes | Finished, None]:
        reason: FinishReason | None = None
        frames = 0
        sound = self._vocoding.stream(request_id, opening.meter.trace)
        chunks = self._engine.stream(resolved, sound.id)
        try:
            await sound.open()
            async for chunk in chunks:
                opening.rows(len(chunk.rows))
                reason = chunk.finish_reason
                frames += len(chunk.codes)
                pcm = await sound.add(chunk.codes)
                opening.waited(sound.seconds)
                yield pcm
            opening.meter.utterance_ended()
            pcm = await sound.finish()
            opening.waited(sound.seconds)
            yield pcm
        finally:
            sound.abort()
            await chunks.aclose()
        assert reason is not None, "the engine's last chunk has a reason"
        yield Finished(reason, len(resolved.prompt), frames)
