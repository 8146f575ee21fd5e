"""The models that are served, as the API names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deployments.errors import ApiError
from deployments.settings import ModelSettings, Settings
from deployments.speaking import Engines


@dataclass(frozen=True)
class ServedModel:
    """A model and its engines."""

    settings: ModelSettings
    engines: Engines

    def require_voice(self, voice: str) -> None:
        """
        Raises:
            ApiError: 404, the model has no such voice.
        """
        if voice not in self.settings.voices:
            raise ApiError(
                404,
                f"voice {voice!r} does not exist; {self.settings.id} has "
                + ", ".join(self.settings.voices),
                param="voice",
                code="voice_not_found",
            )

    def card(self, created: int) -> dict[str, Any]:
        """The model as ``/v1/models`` lists it; ``voices`` is our extension."""
        return {
            "id": self.settings.id,
            "object": "model",
            "created": created,
            "owned_by": "speechlm-serve",
            "voices": self.settings.voices,
        }


class Catalog:
    """Models by id.

    Attributes:
        created: Unix time in seconds at which this catalog was deployed.
    """

    def __init__(self, settings: Settings, engines: Mapping[str, Engines], created: int) -> None:
        self.service = settings.service
        self.created = created
        self._models = {m.id: ServedModel(m, engines[m.id]) for m in settings.models}

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
