"""The voices of each model: its own, and those that clients have recorded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from deployments.calls.answer_messages import Codes
from deployments.calls.conversing import encode
from deployments.front_end.errors import ApiError
from deployments.front_end.uploads import Uploads
from deployments.settings import ServiceSettings
from deployments.stores.voice_store import StoredVoice, VoiceStore

if TYPE_CHECKING:
    from deployments.models.catalog import ServedModel


class Voices:
    """Finds what a request's voice means to its model."""

    def __init__(self, store: VoiceStore, uploads: Uploads, service: ServiceSettings) -> None:
        self.store = store
        self._uploads = uploads
        self._service = service

    async def speaker(self, model: ServedModel, voice: str, param: str = "voice") -> Codes | None:
        """Codes of a recorded voice, int32 ``[frames, streams]``; None for the model's own.

        Args:
            param: the field that names the voice.

        Raises:
            ApiError: 404, there is no such voice; 400, it is recorded and the model cannot clone.
        """
        card = model.card
        if voice in card.voices:
            return None
        stored = await asyncio.to_thread(self.store.find, voice)
        if stored is None:
            raise ApiError(
                404,
                f"{_named(voice, param)} does not exist; {card.id} has " + ", ".join(card.voices),
                param=param,
                code="voice_not_found",
            )
        model.require("clones", param=param)
        return await self._codes(model, stored, param)

    async def _codes(self, model: ServedModel, voice: StoredVoice, param: str) -> Codes:
        """Codes of a stored voice for a model that clones; made once, and kept.

        Raises:
            ApiError: 404, it has just been removed; or no replica can encode it now.
        """
        audio = model.card.audio
        assert audio is not None
        assert model.answering is not None
        kept = await asyncio.to_thread(self.store.codes, voice, audio.encoder)
        if kept is not None:
            return kept
        recording = await asyncio.to_thread(self.store.audio, voice.name)
        named = _named(voice.name, param)
        if recording is None:
            raise ApiError(
                404,
                f"{named} does not exist any more",
                param=param,
                code="voice_not_found",
            )
        samples = await self._uploads.read(
            recording,
            sample_rate=audio.sample_rate,
            max_seconds=self._service.max_voice_seconds,
            param=param,
            prefix=f"{named}:",
            too_long=400,  # the limit was another when it was stored
        )
        codes = await encode(
            model.answering,
            samples,
            self._service.accept_timeout_seconds,
            self._service.retry_after_seconds,
        )
        await asyncio.to_thread(self.store.keep_codes, voice, audio.encoder, codes)
        return np.asarray(codes, dtype=np.int32)


def _named(voice: str, param: str) -> str:
    """A voice, behind the field that names it where that is not ``voice``."""
    return f"voice {voice!r}" if param == "voice" else f"{param}: voice {voice!r}"
