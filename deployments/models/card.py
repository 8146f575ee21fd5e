"""What the API says of a model, from its settings and its own stream spec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from deployments.models.audio import ModelAudio
from deployments.settings import ModelSettings
from engine_adapter.spec import Ability, StreamSpec

_ONLY_VOICE = "default"  # of a model that knows no voices: OpenAI's clients must name one


@dataclass(frozen=True)
class ModelCard:
    """One served model, as its users see it.

    Attributes:
        id: its name in the API.
        voices: names that requests may use, the one to try first in front.
        cfg_scale: guidance of a request that does not say.
        normalizer: see ``ModelSettings``.
        utterance_characters: see ``StreamSpec``.
        abilities: what it can be asked for.
        deafness: why it cannot take audio from outside, although its family does.
        streams: ids per row.
        audio: None if nothing is known of it.
        context_rows: prompt and answer of a request together; None: what the model holds.
        concurrent_requests: of all its replicas, the largest number there may be.
        rows: likewise; a guided request takes two.
        sleeps: whether there may be none at times.
    """

    id: str
    voices: tuple[str, ...]
    cfg_scale: float
    normalizer: Literal["none", "english"]
    utterance_characters: int | None = None
    abilities: tuple[Ability, ...] = ("speaks",)
    deafness: str | None = None
    streams: int = 1
    audio: ModelAudio | None = None
    context_rows: int | None = None
    concurrent_requests: int = 1
    rows: int = 1
    sleeps: bool = False

    @classmethod
    def of(
        cls,
        settings: ModelSettings,
        spec: StreamSpec,
        audio: ModelAudio | None = None,
        directory: Path | None = None,
        *,
        index: int = 0,
    ) -> ModelCard:
        """
        Args:
            directory: the model's; None: it lacks nothing.
            index: of the model among the settings' ``models``.

        Raises:
            ValueError: the settings name a voice that the model does not have; the message begins
                with the setting's name.
        """
        known = tuple(spec.voices)
        voices = tuple(settings.voices or known or (_ONLY_VOICE,))
        unknown = [voice for voice in voices if voice not in known]
        if known and unknown:
            raise ValueError(
                f"models.{index}.voices: {unknown[0]!r} is not one of {', '.join(known)}"
            )
        return cls(
            settings.id,
            voices,
            spec.cfg_scale,
            settings.normalizer,
            spec.utterance_characters,
            abilities=spec.abilities if directory is None else spec.abilities_in(directory),
            deafness=None if directory is None else spec.deafness_in(directory),
            streams=spec.num_streams,
            audio=audio,
            context_rows=settings.engine.max_model_len,
            concurrent_requests=settings.most_replicas * settings.max_concurrent_requests,
            rows=settings.most_replicas * settings.engine.max_rows,
            sleeps=settings.autoscaling is not None and settings.autoscaling.min_replicas == 0,
        )

    def entry(self, created: int) -> dict[str, Any]:
        """Its entry in ``/v1/models``; what comes after ``owned_by`` are our extensions.

        Args:
            created: Unix time in seconds.
        """
        return {
            "id": self.id,
            "object": "model",
            "created": created,
            "owned_by": "speechlm-serve",
            "voices": list(self.voices),
            "cfg_scale": self.cfg_scale,
            "abilities": list(self.abilities),
            "streams": self.streams,
            "sample_rate": None if self.audio is None else self.audio.sample_rate,
            "limits": {
                "context_rows": self.context_rows,
                "concurrent_requests": self.concurrent_requests,
                "rows": self.rows,
            },
        }
