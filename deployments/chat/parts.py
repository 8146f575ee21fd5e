"""From the messages of a conversation to the parts of a prompt."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable

from deployments.calls.answer_messages import CallPart, Clip, Role
from deployments.chat.body import (
    AssistantMessage,
    AudioData,
    AudioPart,
    ChatBody,
    Message,
    TextPart,
)
from deployments.front_end.errors import ApiError
from deployments.front_end.uploads import Uploads
from deployments.models.catalog import Catalog, ServedModel
from deployments.stores.answer_store import KeptAnswer

_MOST_CLIPS = 16  # each is decoded by a process of its own, or read from the store
_PARAM = "messages"


async def parts_of(body: ChatBody, model: ServedModel, catalog: Catalog) -> tuple[CallPart, ...]:
    """The parts, files decoded and references looked up; the voice, if recorded, in front.

    Raises:
        ApiError: 400, over a limit, or a file or reference that cannot be used; 404, a
            reference to audio, or a voice, that does not exist (any more).
    """
    _check_limits(body, model, catalog)
    kept = await _referred_to(body, model, catalog)
    parts: list[CallPart] = []
    if body.audio is not None:
        speaker = await catalog.voices.speaker(model, body.audio.voice_id, "audio")
        if speaker is not None:
            parts.append(CallPart("system", "speaker", speaker))
    seconds = catalog.service.max_audio_seconds
    for index, message in enumerate(body.messages):
        where = f"{_PARAM}[{index}]"
        if isinstance(message, AssistantMessage):
            parts += _said(message, kept)
            if message.audio is not None:
                seconds -= _seconds(kept[message.audio.id], model)
                if seconds < 0:
                    raise _too_long(where)
            continue
        role: Role = "user" if message.role == "user" else "system"
        for number, content in enumerate(_contents(message)):
            if isinstance(content, AudioPart):
                data = f"{where}.content[{number}].input_audio.data"
                clip = await _clip(content.input_audio, model, catalog.uploads, seconds, data)
                seconds -= len(clip.samples) / _rate(model)
                parts.append(CallPart(role, "audio", clip))
            else:
                parts.append(CallPart(role, "text", content.text))
    _check_characters((part.value for part in parts if isinstance(part.value, str)), catalog)
    return tuple(parts)


def texts_of(body: ChatBody) -> str:
    """All that was written, for the audit log."""
    return "\n".join(
        content.text
        for message in body.messages
        for content in _contents(message)
        if isinstance(content, TextPart)
    )


def _contents(message: Message) -> Iterable[TextPart | AudioPart]:
    if message.content is None:
        return []
    if isinstance(message.content, str):
        return [TextPart(type="text", text=message.content)]
    return message.content


def _check_limits(body: ChatBody, model: ServedModel, catalog: Catalog) -> None:
    contents = [content for message in body.messages for content in _contents(message)]
    _check_characters((c.text for c in contents if isinstance(c, TextPart)), catalog)
    clips = sum(isinstance(content, AudioPart) for content in contents)
    if clips:
        model.require("understands_audio", param=_PARAM)
    audio = clips + len(_references(body))
    if audio > _MOST_CLIPS:
        raise _error(f"{audio} pieces of audio are too many; at most {_MOST_CLIPS} are allowed")


def _check_characters(texts: Iterable[str], catalog: Catalog) -> None:
    characters, most = sum(map(len, texts)), catalog.service.max_chat_characters
    if characters > most:
        raise _error(f"{characters} characters are too many; at most {most} are allowed")


def _references(body: ChatBody) -> list[tuple[str, str]]:
    """Where there is one, and the id that it names."""
    return [
        (f"{_PARAM}[{index}]", message.audio.id)
        for index, message in enumerate(body.messages)
        if isinstance(message, AssistantMessage) and message.audio is not None
    ]


async def _referred_to(
    body: ChatBody, model: ServedModel, catalog: Catalog
) -> dict[str, KeptAnswer]:
    """The answers that a conversation refers to, by id.

    Raises:
        ApiError: 404, one does not exist; 400, it is another model's.
    """
    found: dict[str, KeptAnswer] = {}
    for where, reference in _references(body):
        if reference in found:
            continue
        kept = await asyncio.to_thread(catalog.answers.find, reference)
        if kept is None:
            raise ApiError(
                404,
                f"{where}: audio {reference!r} does not exist, or has expired",
                param=_PARAM,
                code="audio_not_found",
            )
        if kept.model != model.card.id:
            raise _error(f"its audio was made by {kept.model}, not by {model.card.id}", where)
        found[reference] = kept
    return found


def _said(message: AssistantMessage, kept: dict[str, KeptAnswer]) -> list[CallPart]:
    parts = [
        CallPart("assistant", "text", content.text)
        for content in _contents(message)
        if isinstance(content, TextPart)
    ]
    if message.audio is None:
        return parts
    answer = kept[message.audio.id]
    if not parts and answer.transcript.strip():
        parts.append(CallPart("assistant", "text", answer.transcript))
    if len(answer.codes):
        parts.append(CallPart("assistant", "audio", answer.codes))
    return parts


async def _clip(
    audio: AudioData, model: ServedModel, uploads: Uploads, seconds: float, where: str
) -> Clip:
    if seconds <= 0:
        raise _too_long(where)
    if audio.data.startswith("data:"):
        raise _error("is a data URL; leave out what is before its base64, and the comma", where)
    try:
        data = base64.b64decode(audio.data, validate=True)
    except ValueError as error:  # of its letters too, where they are not ASCII
        raise _error(f"is not base64: {error}", where) from error
    samples = await uploads.read(
        data,
        sample_rate=_rate(model),
        max_seconds=seconds,
        param=_PARAM,
        prefix=f"{where}:",
        too_long=400,
    )
    return Clip(samples)


def _rate(model: ServedModel) -> int:
    assert model.card.audio is not None
    return model.card.audio.sample_rate


def _seconds(answer: KeptAnswer, model: ServedModel) -> float:
    assert model.card.audio is not None
    return len(answer.codes) * model.card.audio.samples_per_frame / _rate(model)


def _too_long(where: str) -> ApiError:
    return _error("has more audio than is possible", where)


def _error(message: str, where: str = _PARAM) -> ApiError:
    return ApiError(400, f"{where}: {message}", param=_PARAM)
