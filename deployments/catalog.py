"""The models that are served, as the API names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deployments.errors import ApiError
from deployments.messages import Utterance
from deployments.model_card import ModelCard
from deployments.settings import ServiceSettings
from deployments.speaking import Engines
from deployments.text.english import normalize_with_report
from deployments.text.splitting import split


@dataclass(frozen=True)
class ServedModel:
    """A model and its engines."""

    card: ModelCard
    engines: Engines

    def require_voice(self, voice: str) -> None:
        """
        Raises:
            ApiError: 404, the model has no such voice.
        """
        if voice not in self.card.voices:
            raise ApiError(
                404,
                f"voice {voice!r} does not exist; {self.card.id} has "
                + ", ".join(self.card.voices),
                param="voice",
                code="voice_not_found",
            )

    def utterances(self, text: str, *, normalized: bool) -> tuple[Utterance, ...]:
        """``input`` as the model gets to read it, in pieces that it speaks well.

        Args:
            normalized: whether the model's normalizer, if it has one, is used.

        Raises:
            ApiError: 400, some of it, or all, has no words.
        """
        words = self._words(text) if normalized else text
        if not any(character.isalnum() for character in words):
            raise ApiError(400, "input: there is nothing in it to speak", param="input")
        limit = self.card.utterance_characters
        if limit is None:
            return (Utterance(words),)
        return tuple(Utterance(part.text, float(part.pause)) for part in split(words, limit))

    def _words(self, text: str) -> str:
        if self.card.normalizer == "none":
            return text
        normalized = normalize_with_report(text)
        if normalized.unspeakable:
            named = ", ".join(map(repr, normalized.unspeakable[:3]))
            raise ApiError(400, f"input: {self.card.id} cannot speak {named}", param="input")
        return normalized.text


class Catalog:
    """Models by id.

    Attributes:
        created: Unix time in seconds at which this catalog was deployed.
    """

    def __init__(
        self, models: Sequence[ServedModel], service: ServiceSettings, created: int
    ) -> None:
        self.service = service
        self.created = created
        self._models = {model.card.id: model for model in models}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def model(self, model_id: str) -> ServedModel:
        """
        Raises:
            ApiError: 404, there is no such model.
        """
        try:
            return self._models[model_id]
        except KeyError:
            raise ApiError(
                404,
                f"model {model_id!r} does not exist; there is {', '.join(self._models)}",
                param="model",
                code="model_not_found",
            ) from None
