"""One conversation over ``/v1/audio/speech/stream``: text in pieces, audio as it is ready."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from cfg_pairing.admission import Priority
from deployments.audio.joining import Joiner
from deployments.audio.pcm import seconds_of
from deployments.calls.answer_messages import Codes
from deployments.calls.messages import Finished, SpeechCall, Utterance
from deployments.calls.patience import patiently
from deployments.calls.speaking import Speech
from deployments.front_end.errors import ApiError, refuse_fault
from deployments.guards.audit import AuditRecord
from deployments.guards.standing import Standing
from deployments.models.catalog import Catalog
from deployments.speech import stream_messages as messages
from deployments.speech.allowance import Allowance
from deployments.speech.sound import Sound
from deployments.text import splitting
from deployments.text.incremental import TextStream
from engine_adapter.request import FinishReason, draw_seed

# The first utterance may end with a clause: whoever listens hears something sooner.
_FIRST_CHARACTERS = 24
MESSAGE_BYTES = 2**18  # at most; clients take 2**20 unless they are told otherwise
_INCOMPLETE = "incomplete"  # finish reason: some text could not be spoken
_LONGEST_UTTERANCE = 400  # characters, of models that do not say


@dataclass(frozen=True)
class _Mark:
    """Waits behind the text of a ``flush`` or ``end``.

    Attributes:
        whole: whether all text before it could be spoken.
    """

    whole: bool


@dataclass
class _Passage:
    """Audio from ``started`` to ``done``."""

    sound: Sound
    joiner: Joiner
    sample_rate: int
    seconds: float = 0.0  # before speed
    finish_reason: FinishReason = "stop"
    input_tokens: int = 0
    output_tokens: int = 0

    def count(self, finished: Finished) -> None:
        self.input_tokens += finished.input_tokens
        self.output_tokens += finished.output_tokens
        if finished.finish_reason == "length":
            self.finish_reason = "length"


class SpeechSession:
    """Speaks what ``add`` is given, in order, as long as ``speak`` runs.

    The seed of an utterance follows from its place alone, not from when its text came.
    """

    def __init__(
        self,
        options: messages.Start,
        catalog: Catalog,
        speaker: Codes | None,
        request_id: str,
        audit: AuditRecord,
        priority: Priority,
        standing: Standing,
        send_json: Callable[[dict[str, Any]], Awaitable[None]],
        send_bytes: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """
        Args:
            speaker: codes of a recorded voice.
            standing: asked before each utterance.

        Raises:
            ApiError: there is no such model, or a limit is passed.
        """
        self._speaker = speaker
        self._model = catalog.model(options.model)
        self._model.require_instructions(options.instructions, recorded=speaker is not None)
        refuse_fault(options.fault())
        self._most_seconds = catalog.duration(options.max_duration_seconds)
        self._options = options
        self._limits = catalog.service
        self._request_id = request_id
        self._audit = audit
        self._priority = priority
        self._standing = standing
        self._send_json = send_json
        self._send_bytes = send_bytes
        self._seed = draw_seed() if options.seed is None else options.seed
        self._index = 0  # of the next utterance
        self._allowance = Allowance(self._limits.max_stream_seconds)
        self.forget()
        audit.model, audit.voice, audit.seed = options.model, options.voice_id, self._seed
        audit.cfg_scale = self._model.guidance(options.cfg_scale)
        audit.input_characters = 0

    def forget(self) -> None:
        """Drops all text that was not spoken. ``speak`` must not be running."""
        longest = self._model.card.utterance_characters or _LONGEST_UTTERANCE
        self._text = TextStream(longest, min(_FIRST_CHARACTERS, longest))
        self._waiting: deque[Utterance | _Mark] = deque()
        self._ending = False
        # Since the last flush: whether there was text, words in it, and text that is not spoken.
        self._text_came = self._has_words = self._left_out = False
        self._allowance.interrupt()
        self._passage: _Passage | None = None
        self._pause = 0.0  # seconds, behind the last utterance
        self._news = asyncio.Event()
        self._rested: float | None = time.monotonic()  # since then; None: it speaks

    @property
    def idle_since(self) -> float | None:
        """Since when there is nothing to speak, by ``time.monotonic``; None: there is."""
        return None if self._waiting else self._rested

    async def add(self, text: str) -> None:
        """Takes the next piece of the text.

        Raises:
            ApiError: 400, too much waits, or the text has ended, and nothing is taken.
        """
        self._require_no_end("text")
        most = self._limits.max_stream_characters
        waiting = sum(len(each.text) for each in self._waiting if isinstance(each, Utterance))
        if waiting + len(text) > most:
            raise ApiError(
                400,
                f"text: more than {most} characters would wait to be spoken; send it again later",
                param="text",
            )
        self._audit.input_characters = (self._audit.input_characters or 0) + len(text)
        self._audit.add_text(text)
        self._text_came = self._text_came or bool(text.strip())
        await self._enqueue(self._text.push(text))

    async def flush(self, *, end: bool) -> None:
        """Takes the text to end here: speaks all of it, then says ``done``.

        Args:
            end: ``speak`` is to return then, and nothing more is taken.

        Raises:
            ApiError: 400, the text has ended, or too much waits.
        """
        self._require_no_end("type")
        if not end and len(self._waiting) >= self._limits.max_stream_characters:
            raise ApiError(400, "type: too much waits to be spoken", param="type")
        await self._enqueue(self._text.flush())
        if self._text_came and not self._has_words and not self._left_out:
            await self._leave_out(
                ApiError(400, "text: there is nothing in it to speak", param="text")
            )
        self._waiting.append(_Mark(whole=not self._left_out))
        self._text_came = self._has_words = self._left_out = False
        self._ending = end
        self._news.set()

    def _require_no_end(self, param: str) -> None:
        if self._ending:
            raise ApiError(400, f"{param}: comes after end", param=param)

    async def _enqueue(self, parts: list[splitting.Utterance]) -> None:
        if not parts:
            return
        # Away from the event loop: a long text full of numbers takes tens of milliseconds.
        words, errors = await asyncio.to_thread(self._rewritten, parts)
        self._waiting.extend(words)
        self._has_words = self._has_words or bool(words)
        self._news.set()
        for error in errors:
            await self._leave_out(error)

    async def _leave_out(self, error: ApiError) -> None:
        """Tells of text that is not spoken; the rest is."""
        self._left_out = True
        await self._send_json(messages.failed(error.body()))

    def _rewritten(
        self, parts: list[splitting.Utterance]
    ) -> tuple[list[Utterance], list[ApiError]]:
        words: list[Utterance] = []
        errors = []
        for part in parts:
            if not splitting.speakable(part.text):
                continue  # signs on their own, a picture behind the last sentence
            spoken, error = self._model.rewrite(part, normalized=self._options.normalize)
            words += spoken
            if error is not None:
                errors.append(error)
        return words, errors

    async def speak(self) -> None:
        """Speaks what there is, then waits for more, until the end.

        Raises:
            ApiError: an utterance was refused, or failed.
        """
        while not self._ending or self._waiting:
            await self._news.wait()
            self._news.clear()
            self._rested = None
            while self._waiting:
                due = self._waiting.popleft()
                if isinstance(due, Utterance):
                    await self._utterance(due)
                else:
                    await self._done(whole=due.whole)
            self._rested = time.monotonic()

    async def _utterance(self, utterance: Utterance) -> None:
        index, self._index = self._index, self._index + 1
        await self._require_allowance()
        seconds = self._seconds_left()
        if seconds <= 0:
            assert self._passage is not None
            self._passage.finish_reason = "length"
            return
        call = self._options.call(
            self._request_id, (utterance,), seed=self._seed, first_index=index, seconds=seconds
        )
        await self._standing.require()
        if self._passage is None:
            self._audit.asked = time.monotonic()
        call = replace(
            call, speaker=self._speaker, priority=self._priority, trace=self._audit.trace
        )
        speech = await patiently(lambda: self._begin(call))
        try:
            if self._passage is None:
                self._passage = await self._start(speech.accepted.sample_rate)
            else:
                await self._play(self._passage, self._passage.joiner.end_utterance(self._pause))
            passage = self._passage
            await self._send_json(messages.spoken(index, utterance.text))
            async for pcm in speech.pcm():
                await self._play(passage, passage.joiner.piece(pcm))
        finally:
            if speech.finished is None:
                speech.cancel()
        assert speech.finished is not None
        passage.count(speech.finished)
        self._pause = utterance.pause

    async def _begin(self, call: SpeechCall) -> Speech:
        return await Speech.begin(
            self._model.engines,
            call,
            self._limits.accept_timeout_seconds,
            self._limits.retry_after_seconds,
            self._audit,
        )

    async def _start(self, codec_rate: int) -> _Passage:
        sound = Sound(self._options, codec_rate, streamed=True)
        self._audit.media_type = sound.media_type
        await self._send_json(messages.started(self._seed, sound.sample_rate, sound.media_type))
        return _Passage(sound, Joiner(codec_rate), codec_rate)

    async def _play(self, passage: _Passage, pcm: bytes) -> None:
        seconds = seconds_of(pcm, passage.sample_rate)
        passage.seconds += seconds
        if encoded := passage.sound.piece(pcm):
            await self._send_audio(encoded)
        await asyncio.sleep(self._allowance.spend(seconds / self._options.speed))

    async def _done(self, *, whole: bool = True) -> None:
        """Ends the passage; one without anything to speak ends too."""
        passage, self._passage = self._passage, None
        if passage is None:
            await self._send_json(messages.done("stop" if whole else _INCOMPLETE, 0, 0))
            return
        await self._play(passage, passage.joiner.finish())
        if encoded := passage.sound.finish():
            await self._send_audio(encoded)
        reason = passage.finish_reason if whole else _INCOMPLETE
        await self._send_json(messages.done(reason, passage.input_tokens, passage.output_tokens))

    async def _send_audio(self, audio: bytes) -> None:
        for begin in range(0, len(audio), MESSAGE_BYTES):
            await self._send_bytes(audio[begin : begin + MESSAGE_BYTES])

    async def _require_allowance(self) -> None:
        if self._allowance.left > 0:
            return
        if self._passage is not None:
            self._passage.finish_reason = "length"
            await self._done()
        most = self._limits.max_stream_seconds
        raise ApiError(
            400,
            f"this connection has used its {most:g} seconds of audio; open another one",
            code="max_stream_seconds",
        )

    def _seconds_left(self) -> float:
        """Of the audio of a passage, before speed."""
        allowed = self._allowance.left * self._options.speed
        spoken = 0.0 if self._passage is None else self._passage.seconds
        return min(self._most_seconds - spoken, allowed)
