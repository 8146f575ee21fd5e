"""``POST /v1/audio/speech``: text to speech."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from deployments.calls.messages import SpeechCall, usage
from deployments.calls.speaking import Speech
from deployments.front_end import openapi, sse
from deployments.front_end.errors import ApiError, refuse_fault
from deployments.front_end.strict_route import StrictRoute
from deployments.guards.audit import AuditRecord
from deployments.models.catalog import Catalog, ServedModel
from deployments.speech.body import SpeechBody
from deployments.speech.sound import Sound

# OpenAI's clients send it with ``with_streaming_response``.
_CLIENT_STREAMS = ("x-stainless-raw-response", "stream")


def router(catalog: Catalog) -> APIRouter:
    """The endpoint over one catalog."""
    routes = APIRouter(tags=["audio"], route_class=StrictRoute)
    limits = catalog.service

    @routes.post("/v1/audio/speech", response_class=Response, responses=openapi.audio())
    async def create_speech(body: SpeechBody, request: Request) -> Response:
        """Speaks ``input``."""
        model = catalog.model(body.model)
        speaker = await catalog.voices.speaker(model, body.voice_id)
        model.require_instructions(body.instructions, recorded=speaker is not None)
        refuse_fault(body.fault())
        name, value = _CLIENT_STREAMS
        streamed = body.streamed(request.headers.get(name) == value)
        # Away from the event loop: a long text full of numbers takes tens of milliseconds.
        call = await asyncio.to_thread(_call, body, model, request.state.request_id, catalog)
        audit: AuditRecord = request.state.audit
        call = replace(call, speaker=speaker, priority=request.state.priority, trace=audit.trace)
        audit.model, audit.voice = body.model, body.voice_id
        audit.input_characters, audit.text = len(body.input), body.input
        audit.cfg_scale = model.guidance(body.cfg_scale)
        speech = await Speech.begin(
            model.engines, call, limits.accept_timeout_seconds, limits.retry_after_seconds, audit
        )
        request.state.at_end.callback(speech.cancel)
        sound = Sound(body, speech.accepted.sample_rate, streamed=streamed)
        headers = {
            "x-seed": str(speech.accepted.seed),
            "x-sample-rate": str(sound.sample_rate),
            "server-timing": _server_timing(speech),
        }
        if body.stream_format == "sse":
            request.state.at_deadline = sse.failure
            events = _events(speech, sound)
            return StreamingResponse(events, media_type=sse.MEDIA_TYPE, headers=headers)
        pieces = _encoded(speech, sound)
        if streamed:
            return StreamingResponse(pieces, media_type=sound.media_type, headers=headers)
        content = b"".join([piece async for piece in pieces])
        assert speech.finished is not None
        headers["x-finish-reason"] = speech.finished.finish_reason
        return Response(content, media_type=sound.media_type, headers=headers)

    return routes


def _call(body: SpeechBody, model: ServedModel, request_id: str, catalog: Catalog) -> SpeechCall:
    """
    Raises:
        ApiError: 400, over a limit of this service, or a text without words.
    """
    limits = catalog.service
    if len(body.input) > limits.max_input_characters:
        raise ApiError(
            400,
            f"input: has {len(body.input)} characters, at most "
            f"{limits.max_input_characters} are possible",
            param="input",
        )
    seconds = catalog.duration(body.max_duration_seconds)
    utterances = model.utterances(body.input, normalized=body.normalize)
    return body.call(request_id, utterances, seed=body.seed, seconds=seconds)


def _server_timing(speech: Speech) -> str:
    """What the time to first audio was spent on, as W3C's Server Timing says it."""
    first = speech.first
    spent = {
        "accept": speech.accept,
        "prefill": first.prefill,
        "frames": first.frames,
        "vocoder": first.vocoder,
    }
    return ", ".join(f"{name};dur={1000 * seconds:.1f}" for name, seconds in spent.items())


async def _encoded(speech: Speech, sound: Sound) -> AsyncIterator[bytes]:
    async for pcm in speech.pcm():
        if piece := sound.piece(pcm):
            yield piece
    if piece := sound.finish():
        yield piece


async def _events(speech: Speech, sound: Sound) -> AsyncIterator[bytes]:
    """OpenAI's events; the finish reason and the seed are ours."""
    try:
        async for piece in _encoded(speech, sound):
            audio = base64.b64encode(piece).decode()
            yield sse.event({"type": "speech.audio.delta", "audio": audio})
    except ApiError as error:
        yield sse.failure(error)
        return
    finished = speech.finished
    assert finished is not None
    yield sse.event(
        {
            "type": "speech.audio.done",
            "usage": usage(finished.input_tokens, finished.output_tokens),
            "finish_reason": finished.finish_reason,
            "seed": speech.accepted.seed,
        }
    )
