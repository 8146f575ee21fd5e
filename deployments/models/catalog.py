"""The models that are served, as the API names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deployments.calls.conversing import AnsweringEngines
from deployments.calls.messages import Utterance
from deployments.calls.speaking import Engines
from deployments.front_end.errors import ApiError
from deployments.front_end.uploads import Uploads
from deployments.models.card import ModelCard
from deployments.settings import ServiceSettings
from deployments.stores.answer_store import AnswerStore
from deployments.stores.database import Database
from deployments.stores.voice_store import VoiceStore
from deployments.stores.voices import Voices
from deployments.text import splitting
from deployments.text.english import normalize_with_report
from engine_adapter.spec import BY_EAR, Ability


@dataclass(frozen=True)
class ServedModel:
    """A model and its engines.

    Attributes:
        answering: the same engines; None if nothing but speech is asked of them.
    """

    card: ModelCard
    engines: Engines
    answering: AnsweringEngines | None = None

    def require(self, ability: Ability, param: str = "model") -> None:
        """
        Args:
            param: the field that asks for it.

        Raises:
            ApiError: 400, the model has not this ability.
        """
        if ability not in self.card.abilities:
            card = self.card
            message = f"{param}: {card.id} lacks the ability {ability!r}"
            if ability in BY_EAR and card.deafness is not None:
                message += f" ({card.deafness})"
            message += f"; it has {', '.join(card.abilities)}"
            raise ApiError(400, message, param=param, code="ability_missing")

    def guidance(self, cfg_scale: float | None) -> float:
        """The guidance scale of a request for audio; above 1 it is guided.

        Args:
            cfg_scale: None if the request does not say.
        """
        return self.card.cfg_scale if cfg_scale is None else cfg_scale

    def require_instructions(self, instructions: str | None, *, recorded: bool) -> None:
        """
        Args:
            instructions: how to speak; None: nothing is asked.
            recorded: whether it shall speak with a recorded voice.

        Raises:
            ApiError: 400, the model cannot do as it is asked.
        """
        if instructions is None:
            return
        param = "instructions"
        self.require("takes_instructions", param)
        if recorded:
            raise ApiError(400, f"{param}: do not go with a recorded voice", param=param)

    def utterances(self, text: str, *, normalized: bool) -> tuple[Utterance, ...]:
        """``input`` as the model gets to read it, in pieces that it speaks well.

        Args:
            normalized: whether the model's normalizer, if it has one, is used.

        Raises:
            ApiError: 400, some of it, or all, has no words.
        """
        words, unspeakable = self._words(text, normalized=normalized)
        if unspeakable:
            raise self._cannot_speak("input", unspeakable)
        if not any(character.isalnum() for character in words):
            raise ApiError(400, "input: there is nothing in it to speak", param="input")
        limit = self.card.utterance_characters
        if limit is None:
            return (Utterance(words),)
        parts = splitting.split(words, limit)
        return tuple(Utterance(part.text, float(part.pause)) for part in parts)

    def rewrite(
        self, part: splitting.Utterance, *, normalized: bool
    ) -> tuple[tuple[Utterance, ...], ApiError | None]:
        """One utterance of a text that arrives in pieces, as the model gets to read it.

        Returns:
            None, one, or several if its words are longer than what the model speaks well; and what
            is wrong with the rest of it, which is left out.
        """
        words, unspeakable = self._words(part.text, normalized=normalized)
        error = self._cannot_speak("text", unspeakable) if unspeakable else None
        limit = self.card.utterance_characters or len(words)
        utterances = tuple(
            Utterance(each.text, float(each.pause))
            for each in splitting.rewritten(part, words, max(1, limit))
        )
        return utterances, error

    def _words(self, text: str, *, normalized: bool) -> tuple[str, tuple[str, ...]]:
        """What is spoken of a text, and what cannot be."""
        if not normalized or self.card.normalizer == "none":
            return text, ()
        report = normalize_with_report(text)
        return report.text, report.unspeakable

    def _cannot_speak(self, param: str, unspeakable: tuple[str, ...]) -> ApiError:
        named = ", ".join(map(repr, unspeakable[:3]))
        return ApiError(400, f"{param}: {self.card.id} cannot speak {named}", param=param)


class Catalog:
    """Models by id.

    Attributes:
        created: Unix time in seconds at which this catalog was deployed.
        voices: of the models and of clients.
        answers: whose audio a conversation may refer to.
        uploads: reads audio that requests bring.
    """

    def __init__(
        self, models: Sequence[ServedModel], service: ServiceSettings, created: int
    ) -> None:
        self.service = service
        self.created = created
        database = Database(Path(service.store).absolute())
        self.uploads = Uploads(service.retry_after_seconds)
        self.voices = Voices(VoiceStore(database, service.max_voices), self.uploads, service)
        self.answers = AnswerStore(database, service.answer_seconds, service.max_answers)
        self._models = {model.card.id: model for model in models}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def duration(self, seconds: float | None) -> float:
        """Seconds of audio that an answer may have.

        Args:
            seconds: that its request asks for at most; None: it does not say.

        Raises:
            ApiError: 400, so much audio may not be asked for.
        """
        most = self.service.max_duration_seconds
        if seconds is None:
            return most
        if seconds > most:
            raise ApiError(
                400,
                f"max_duration_seconds: must be at most {most:g}",
                param="max_duration_seconds",
            )
        return seconds

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
                f"model {model_id!r} does not exist; the models are {', '.join(self._models)}",
                param="model",
                code="model_not_found",
            ) from None
