"""``POST /v1/audio/transcriptions``: recordings written down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from numpy.typing import NDArray

from deployments.calls.answer_messages import AnswerCall, CallPart, Clip, TextPiece
from deployments.calls.conversing import Answer
from deployments.calls.patience import patiently
from deployments.front_end import openapi, sse
from deployments.front_end.errors import ApiError
from deployments.front_end.strict_route import StrictRoute
from deployments.guards.audit import AuditRecord
from deployments.models.catalog import Catalog, ServedModel
from deployments.transcription import transcript
from deployments.transcription.form import TranscriptionForm
from deployments.transcription.silences import Span, spoken_parts
from deployments.transcription.transcript import Joining, Segment

_MEDIA_TYPES = {"text": "text/plain", "srt": "application/x-subrip", "vtt": "text/vtt"}


def router(catalog: Catalog) -> APIRouter:
    """The endpoint over one catalog."""
    routes = APIRouter(tags=["audio"], route_class=StrictRoute)

    @routes.post(
        "/v1/audio/transcriptions",
        response_class=JSONResponse,
        responses=openapi.also(*_MEDIA_TYPES.values(), sse.MEDIA_TYPE),
    )
    async def create_transcription(
        form: Annotated[TranscriptionForm, Depends()], request: Request
    ) -> Response:
        """Writes down what is said in ``file``."""
        form.check_names((await request.form()).multi_items())
        model = catalog.model(form.model)
        model.require("transcribes")
        form.check_values()
        audit: AuditRecord = request.state.audit
        audit.model = form.model
        assert model.card.audio is not None
        rate = model.card.audio.sample_rate
        samples = await catalog.uploads.read(
            await form.file.read(),
            sample_rate=rate,
            max_seconds=catalog.service.max_audio_seconds,
            param="file",
        )
        spans = await asyncio.to_thread(spoken_parts, samples, rate)
        work = _Transcription(catalog, model, form, request, samples, spans)
        await work.begin()
        if form.stream:
            request.state.at_deadline = sse.failure
            return StreamingResponse(work.events(), media_type=sse.MEDIA_TYPE)
        segments = [segment async for segment in work.segments()]
        headers = {"x-finish-reason": work.finish_reason}
        if form.response_format in _MEDIA_TYPES:
            text = {
                "text": lambda: f"{work.joining.text}\n",
                "srt": lambda: transcript.srt(segments),
                "vtt": lambda: transcript.vtt(segments),
            }[form.response_format]()
            media_type = _MEDIA_TYPES[form.response_format]
            return PlainTextResponse(text, media_type=media_type, headers=headers)
        body: dict[str, Any] = {"text": work.joining.text, "usage": work.usage()}
        if form.response_format == "verbose_json":
            body |= {
                "task": "transcribe",
                "language": None,
                "duration": len(samples) / rate,
                "segments": [
                    {"id": index, "start": s.start, "end": s.end, "text": s.text}
                    | {"temperature": form.temperature}
                    for index, s in enumerate(segments)
                ],
            }
        return JSONResponse(body, headers=headers)

    return routes


class _Transcription:
    """One recording on its way: its parts one after the other, as separate requests."""

    def __init__(
        self,
        catalog: Catalog,
        model: ServedModel,
        form: TranscriptionForm,
        request: Request,
        samples: NDArray[np.float32],
        spans: list[Span],
    ) -> None:
        self.joining = Joining()
        self.finish_reason = "stop"
        self._service = catalog.service
        self._model = model
        self._form = form
        self._state = request.state
        self._samples = samples
        self._spans = spans
        self._next: Answer | None = None
        self._input_tokens = self._audio_tokens = self._output_tokens = 0

    async def begin(self) -> None:
        """Waits for the first text, so that a refusal has a status.

        Raises:
            ApiError: refused, failed, or no replica answers.
        """
        if self._spans:
            self._next = await self._answer(self._spans[0])

    async def segments(self) -> AsyncIterator[Segment]:
        """The parts, as they are complete.

        Raises:
            ApiError: generation failed.
        """
        async for piece in self._pieces():
            if isinstance(piece, Segment):
                yield piece

    async def events(self) -> AsyncIterator[bytes]:
        """OpenAI's events; an error ends them without the last one."""
        try:
            async for piece in self._pieces():
                if isinstance(piece, str):
                    yield sse.event({"type": "transcript.text.delta", "delta": piece})
        except ApiError as error:
            yield sse.failure(error)
            return
        done = {"type": "transcript.text.done", "text": self.joining.text}
        yield sse.event({**done, "usage": self.usage(), "finish_reason": self.finish_reason})

    def usage(self) -> dict[str, Any]:
        """Rows of the prompts and text ids so far."""
        return {
            "type": "tokens",
            "input_tokens": self._input_tokens,
            "output_tokens": self._output_tokens,
            "total_tokens": self._input_tokens + self._output_tokens,
            "input_token_details": {
                "audio_tokens": self._audio_tokens,
                "text_tokens": self._input_tokens - self._audio_tokens,
            },
        }

    async def _pieces(self) -> AsyncIterator[str | Segment]:
        """Text that can be passed on, and at the end of each part its segment."""
        assert self._model.card.audio is not None
        rate = self._model.card.audio.sample_rate
        for span in self._spans:
            answer, self._next = self._next, None
            if answer is None:
                answer = await patiently(partial(self._answer, span))
            texts = []
            async for piece in answer.pieces():
                if isinstance(piece, TextPiece):
                    texts.append(piece.text)
                    if passed := self.joining.piece(piece.text):
                        yield passed
            self.joining.end_part()
            answered = answer.answered
            assert answered is not None, "all pieces were read"
            self._input_tokens += answered.prompt_tokens
            self._audio_tokens += answered.prompt_frames
            self._output_tokens += answered.text_tokens
            if answered.finish_reason == "length":
                self.finish_reason = "length"
            yield Segment(span.first / rate, span.end / rate, "".join(texts).strip())

    async def _answer(self, span: Span) -> Answer:
        clip = Clip(np.ascontiguousarray(self._samples[span.first : span.end]))
        call = AnswerCall(
            request_id=self._state.request_id,
            task="transcription",
            trace=self._state.audit.trace,
            output="text",
            parts=(CallPart("user", "audio", clip),),
            param="file",
            temperature=self._form.temperature,
            priority=self._state.priority,
        )
        assert self._model.answering is not None
        answer = await Answer.begin(
            self._model.answering,
            call,
            self._service.accept_timeout_seconds,
            self._service.retry_after_seconds,
            self._state.audit,
        )
        self._state.at_end.callback(answer.cancel)
        return answer
