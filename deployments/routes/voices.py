"""``/v1/audio/voices``: the models' own voices, and recorded ones for models that clone."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import Response

from deployments.calls.conversing import encode
from deployments.front_end.errors import ApiError
from deployments.front_end.forms import check_fields
from deployments.front_end.strict_route import StrictRoute
from deployments.models.catalog import Catalog, ServedModel
from deployments.stores.voice_store import StoredVoice, TooManyVoices, VoiceExists
from deployments.transcription.silences import spoken_parts

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
_FIELDS = {"name", "audio_sample", "file", "consent"}
_LEAST_SECONDS = 0.5
_LONGEST_CONSENT = 512


def router(catalog: Catalog) -> APIRouter:
    """The endpoints over one catalog."""
    routes = APIRouter(prefix="/v1/audio/voices", tags=["audio"], route_class=StrictRoute)
    store = catalog.voices.store

    @routes.head("", include_in_schema=False)
    @routes.get("")
    async def list_voices() -> dict[str, Any]:
        """All voices: the models' own, then the recorded ones."""
        own: dict[str, list[str]] = {}
        for model in catalog:
            for voice in model.card.voices:
                own.setdefault(voice, []).append(model.card.id)
        stored = await asyncio.to_thread(store.voices)
        return {
            "object": "list",
            "data": [_entry(name, None, models) for name, models in own.items()]
            + [_entry(voice.name, voice.created, _able(catalog)) for voice in stored],
        }

    @routes.post("")
    async def create_voice(
        request: Request,
        name: Annotated[str, Form(min_length=1, json_schema_extra={"pattern": _NAME})],
        audio_sample: Annotated[UploadFile | None, File()] = None,
        file: Annotated[UploadFile | None, File()] = None,
        consent: Annotated[str | None, Form(max_length=_LONGEST_CONSENT)] = None,
    ) -> dict[str, Any]:
        """Stores a recording, in OpenAI's field ``audio_sample`` or in ``file``."""
        check_fields((await request.form()).multi_items(), _FIELDS)
        models = _cloning(catalog)
        _check_name(name, catalog)
        if (audio_sample is None) == (file is None):
            raise ApiError(400, "audio_sample: one file is required", param="audio_sample")
        upload = audio_sample or file
        assert upload is not None
        param = "file" if audio_sample is None else "audio_sample"
        recording = await _recording(upload, param, catalog)
        voice = StoredVoice(name, int(time.time()), consent)
        codes = await _encoded(recording, param, models, catalog)
        try:
            await asyncio.to_thread(store.add, voice, recording)
        except (VoiceExists, TooManyVoices) as error:
            raise ApiError(400, f"name: {error}", param="name") from error
        for encoder, encoded in codes.items():
            await asyncio.to_thread(store.keep_codes, voice, encoder, encoded)
        return _entry(name, voice.created, [model.card.id for model in models])

    @routes.head("/{name}", include_in_schema=False)
    @routes.get("/{name}")
    async def get_voice(name: str) -> dict[str, Any]:
        """One voice."""
        own = [model.card.id for model in catalog if name in model.card.voices]
        if own:
            return _entry(name, None, own)
        voice = await asyncio.to_thread(store.find, name)
        if voice is None:
            raise _unknown(name)
        return _entry(name, voice.created, _able(catalog))

    @routes.delete("/{name}", status_code=204, response_class=Response)
    async def delete_voice(name: str) -> Response:
        """Removes a recorded voice."""
        if any(name in model.card.voices for model in catalog):
            raise ApiError(400, f"name: {name!r} is a model's own voice", param="name")
        if not await asyncio.to_thread(store.remove, name):
            raise _unknown(name)
        return Response(status_code=204)

    return routes


def _entry(name: str, created: int | None, models: list[str]) -> dict[str, Any]:
    """One voice; ``models`` and ``built_in`` are our extensions."""
    return {
        "id": name,
        "object": "audio.voice",
        "name": name,
        "created_at": created,
        "built_in": created is None,
        "models": models,
    }


def _unknown(name: str) -> ApiError:
    return ApiError(404, f"name: there is no voice {name!r}", param="name", code="voice_not_found")


def _able(catalog: Catalog) -> list[str]:
    """The models that can speak with a recorded voice."""
    return [model.card.id for model in catalog if "clones" in model.card.abilities]


def _cloning(catalog: Catalog) -> list[ServedModel]:
    models = [model for model in catalog if "clones" in model.card.abilities]
    if not models:
        served = ", ".join(
            card.id if card.deafness is None else f"{card.id} ({card.deafness})"
            for card in (model.card for model in catalog)
        )
        raise ApiError(
            400,
            f"audio_sample: no model here has the ability 'clones'; there is {served}",
            param="audio_sample",
            code="ability_missing",
        )
    return models


def _check_name(name: str, catalog: Catalog) -> None:
    if not re.fullmatch(_NAME, name):
        raise ApiError(
            400,
            "name: must be 1 to 64 letters, digits, dots, dashes and underscores, the first of "
            "them a letter or digit",
            param="name",
        )
    if any(name in model.card.voices for model in catalog):
        raise ApiError(400, f"name: {name!r} is a model's own voice", param="name")


async def _recording(upload: UploadFile, param: str, catalog: Catalog) -> bytes:
    most = catalog.service.max_voice_bytes
    data = await upload.read(most + 1)
    if len(data) > most:
        raise ApiError(413, f"{param}: is larger than {most} bytes", param=param)
    return data


async def _encoded(
    recording: bytes, param: str, models: list[ServedModel], catalog: Catalog
) -> dict[str, Any]:
    """Codes by encoder, so that a recording that cannot be used is refused now."""
    codes: dict[str, Any] = {}
    for model in models:
        audio = model.card.audio
        assert audio is not None
        assert model.answering is not None
        if audio.encoder in codes:
            continue
        samples = await catalog.uploads.read(
            recording,
            sample_rate=audio.sample_rate,
            max_seconds=catalog.service.max_voice_seconds,
            param=param,
        )
        if len(samples) < _LEAST_SECONDS * audio.sample_rate:
            raise ApiError(400, f"{param}: is shorter than {_LEAST_SECONDS:g} seconds", param=param)
        if not await asyncio.to_thread(spoken_parts, samples, audio.sample_rate):
            raise ApiError(400, f"{param}: nothing is to be heard in it", param=param)
        codes[audio.encoder] = await encode(
            model.answering,
            samples,
            catalog.service.accept_timeout_seconds,
            catalog.service.retry_after_seconds,
        )
    return codes
