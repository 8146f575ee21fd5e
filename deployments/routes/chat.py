"""``POST /v1/chat/completions``: a conversation in text and audio."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from deployments.audio.formats import encoder
from deployments.calls.answer_messages import AnswerCall, Answered, TextPiece
from deployments.calls.conversing import Answer
from deployments.chat.body import AudioOptions, ChatBody
from deployments.chat.parts import parts_of, texts_of
from deployments.front_end import openapi, sse
from deployments.front_end.errors import ApiError, refuse_fault
from deployments.front_end.strict_route import StrictRoute
from deployments.guards.audit import AuditRecord
from deployments.models.catalog import Catalog
from deployments.stores.answer_store import KeptAnswer


def router(catalog: Catalog) -> APIRouter:
    """The endpoint over one catalog."""
    routes = APIRouter(tags=["chat"], route_class=StrictRoute)
    limits = catalog.service

    @routes.post(
        "/v1/chat/completions",
        response_class=JSONResponse,
        responses=openapi.also(sse.MEDIA_TYPE),
    )
    async def create_chat_completion(body: ChatBody, request: Request) -> Response:
        """Answers the last message."""
        model = catalog.model(body.model)
        model.require("converses")
        refuse_fault(body.fault())
        audit: AuditRecord = request.state.audit
        audit.model, audit.text = body.model, texts_of(body)
        audit.input_characters = len(audit.text)
        audit.cfg_scale = model.guidance(body.cfg_scale) if body.speaks else None
        audit.voice = None if body.audio is None else body.audio.voice_id
        parts = await parts_of(body, model, catalog)
        call = AnswerCall(
            request_id=request.state.request_id,
            task="conversation",
            output="text+audio" if body.speaks else "text",
            parts=parts,
            param="messages",
            cfg_scale=body.cfg_scale,
            seed=body.seed,
            temperature=body.temperature,
            top_k=body.top_k,
            top_p=body.top_p,
            max_tokens=body.limit,
            trace=audit.trace,
            priority=request.state.priority,
        )
        assert model.answering is not None
        answer = await Answer.begin(
            model.answering,
            call,
            limits.accept_timeout_seconds,
            limits.retry_after_seconds,
            audit,
        )
        request.state.at_end.callback(answer.cancel)
        headers = {"x-seed": str(answer.accepted.seed)}
        completion = _Completion(catalog, body, answer)
        if body.stream:
            request.state.at_deadline = sse.chat_failure
            return StreamingResponse(
                completion.events(), media_type=sse.MEDIA_TYPE, headers=headers
            )
        return JSONResponse(await completion.whole(), headers=headers)

    return routes


class _Completion:
    """One answer in OpenAI's words."""

    def __init__(self, catalog: Catalog, body: ChatBody, answer: Answer) -> None:
        self._answers = catalog.answers
        self._body = body
        self._answer = answer
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": body.model,
        }
        self._audio_id, self._expires = self._answers.reserve()

    async def whole(self) -> dict[str, Any]:
        """The answer at once.

        Raises:
            ApiError: generation failed.
        """
        options = self._body.audio
        sound = self._encoder(options, streamed=False)
        texts, encoded = [], []
        async for piece in self._answer.pieces():
            if isinstance(piece, TextPiece):
                texts.append(piece.text)
            elif sound is not None:
                encoded.append(sound.encode(piece))
        text, answered = "".join(texts), self._answered()
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if sound is not None:
            encoded.append(sound.finish())
            expires = await self._keep(text, answered)
            message["content"] = None
            message["audio"] = {
                "id": self._audio_id,
                "data": base64.b64encode(b"".join(encoded)).decode(),
                "expires_at": expires,
                "transcript": text,
            }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": answered.finish_reason,
        }
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": _usage(answered),
        }

    async def events(self) -> AsyncIterator[bytes]:
        """The answer as it is made, then ``[DONE]``; an error ends it without that."""
        sound = self._encoder(self._body.audio, streamed=True)
        speaks = sound is not None
        texts = []
        opening = {"audio": {"id": self._audio_id}} if speaks else {"content": ""}
        yield self._chunk({"role": "assistant", **opening})
        try:
            async for piece in self._answer.pieces():
                if isinstance(piece, TextPiece):
                    texts.append(piece.text)
                    text = piece.text
                    yield self._chunk(
                        {"audio": {"transcript": text}} if speaks else {"content": text}
                    )
                elif sound is not None and (data := sound.encode(piece)):
                    yield self._chunk({"audio": {"data": base64.b64encode(data).decode()}})
            answered = self._answered()
            if sound is not None:
                if data := sound.finish():
                    yield self._chunk({"audio": {"data": base64.b64encode(data).decode()}})
                expires = await self._keep("".join(texts), answered)
                yield self._chunk({"audio": {"expires_at": expires}})
        except ApiError as error:
            yield sse.chat_failure(error)
            return
        yield self._chunk({}, answered.finish_reason)
        options = self._body.stream_options
        if options is not None and options.include_usage:
            yield self._event([], _usage(answered))
        yield b"data: [DONE]\n\n"

    def _encoder(self, options: AudioOptions | None, *, streamed: bool) -> Any:
        if options is None:
            return None
        return encoder(options.encoding, self._answer.accepted.sample_rate, streamed=streamed)

    def _answered(self) -> Answered:
        answered = self._answer.answered
        assert answered is not None, "all pieces were read"
        return answered

    async def _keep(self, text: str, answered: Answered) -> int:
        """Until when the audio can be referred to, Unix time in seconds."""
        kept = KeptAnswer(self._audio_id, self._body.model, self._expires, text, answered.codes)
        try:
            await asyncio.to_thread(self._answers.keep, kept)
        except ApiError:  # the store has logged it, and the answer itself is whole
            return int(time.time())
        return self._expires

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return self._event(
            [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]
        )

    def _event(self, choices: list[Any], usage: dict[str, Any] | None = None) -> bytes:
        data = {**self._head, "object": "chat.completion.chunk", "choices": choices}
        options = self._body.stream_options
        if options is not None and options.include_usage:
            data["usage"] = usage
        return sse.event(data)


def _usage(answered: Answered) -> dict[str, Any]:
    """Rows of the prompt; text ids and frames of the answer."""
    completion = answered.text_tokens + answered.frames
    return {
        "prompt_tokens": answered.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": answered.prompt_tokens + completion,
        "prompt_tokens_details": {
            "text_tokens": answered.prompt_tokens - answered.prompt_frames,
            "audio_tokens": answered.prompt_frames,
        },
        "completion_tokens_details": {
            "text_tokens": answered.text_tokens,
            "audio_tokens": answered.frames,
        },
    }
