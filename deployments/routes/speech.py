"""``POST /v1/audio/speech``: text to speech."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from deployments.audio.formats import Encoder, encoder
from deployments.catalog import Catalog, ServedModel
from deployments.errors import ApiError
from deployments.messages import SpeechCall
from deployments.settings import ServiceSettings
from deployments.speaking import Speech
from deployments.speech_body import SpeechBody

# OpenAI's clients send it with ``with_streaming_response``.
_CLIENT_STREAMS = ("x-stainless-raw-response", "stream")


def router(catalog: Catalog) -> APIRouter:
    """The endpoint over one catalog."""
    routes = APIRouter(tags=["audio"])
    limits = catalog.service

    @routes.post("/v1/audio/speech", response_class=Response)
    async def create_speech(body: SpeechBody, request: Request) -> Response:
        """Speaks ``input``."""
        model = catalog.model(body.model)
        model.require_voice(body.voice_id)
        name, value = _CLIENT_STREAMS
        streamed = body.streamed(request.headers.get(name) == value)
        # Away from the event loop: a long text full of numbers takes tens of milliseconds.
        call = await asyncio.to_thread(_call, body, model, request.state.request_id, limits)
        speech = await Speech.begin(
            model.engines, call, limits.accept_timeout_seconds, limits.retry_after_seconds
        )
        encode = encoder(body.audio_format, speech.accepted.sample_rate, streamed=streamed)
        headers = {
            "x-seed": str(speech.accepted.seed),
            "x-sample-rate": str(encode.sample_rate),
        }
        pieces = _encoded(speech, encode)
        if streamed:
            return StreamingResponse(pieces, media_type=encode.media_type, headers=headers)
        content = b"".join([piece async for piece in pieces])
        headers["x-finish-reason"] = str(speech.finish_reason)
        return Response(content, media_type=encode.media_type, headers=headers)

    return routes


def _call(
    body: SpeechBody, model: ServedModel, request_id: str, limits: ServiceSettings
) -> SpeechCall:
    """
    Raises:
        ApiError: 400, over a limit of this service, or a text without words.
    """
    if len(body.input) > limits.max_input_characters:
        raise ApiError(
            400,
            f"input: has {len(body.input)} characters, at most "
            f"{limits.max_input_characters} are possible",
            param="input",
        )
    seconds = body.max_duration_seconds
    if seconds is not None and seconds > limits.max_duration_seconds:
        raise ApiError(
            400,
            f"max_duration_seconds: at most {limits.max_duration_seconds:g} is possible",
            param="max_duration_seconds",
        )
    return SpeechCall(
        request_id=request_id,
        text=model.words(body.input),
        voice=body.voice_id,
        cfg_scale=body.cfg_scale,
        seed=body.seed,
        temperature=body.temperature,
        top_k=body.top_k,
        top_p=body.top_p,
        max_seconds=seconds,
    )


async def _encoded(speech: Speech, encode: Encoder) -> AsyncIterator[bytes]:
    async for pcm in speech.pcm():
        if piece := encode.encode(pcm):
            yield piece
    if piece := encode.finish():
        yield piece
