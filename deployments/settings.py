"""Every setting of the service, checked in one place.

In ``serve_config.yaml`` they are the ``args`` of the application. A key that is not
known, and a value of the wrong type, is an error.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vocoder_service.windows import WindowSchedule

Cpus = Annotated[float, Field(ge=0)]
Gpus = Annotated[float, Field(ge=0)]
Seconds = Annotated[float, Field(gt=0)]


class _Settings(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, protected_namespaces=()
    )


class EngineSettings(_Settings):
    """The vLLM engine of one replica.

    Attributes:
        dtype: of weights and KV cache.
        max_rows: rows of a step; a guided request takes two while it writes audio.
        kv_blocks: size of the KV cache; None lets the engine measure what fits.
        max_batched_tokens: prompt and generated tokens of a step; None: vLLM's choice.
        max_model_len: rows of one request, prompt included; None: what the model allows.
        gpu_memory_utilization: share of the GPU's memory; the vocoder needs the rest.
            None: vLLM's choice.
        cpus, gpus: Ray resources of the replica; a GPU may be shared with the vocoder.
    """

    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    max_rows: int = Field(64, ge=1)
    kv_blocks: int | None = Field(None, ge=1)
    max_batched_tokens: int | None = Field(None, ge=1)
    max_model_len: int | None = Field(None, ge=1)
    prefix_cache: bool = True
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1)
    cpus: Cpus = 1
    gpus: Gpus = 0


class VocoderSettings(_Settings):
    """The vocoder actor beside each engine replica.

    Attributes:
        first_window: frames of the first piece of audio: small, for an early start.
        window_growth: factor from one piece to the next.
        max_window: frames of the largest piece: large, for throughput.
        max_batch: pieces decoded together.
    """

    first_window: int = Field(8, ge=1)
    window_growth: float = Field(1.5, ge=1)
    max_window: int = Field(64, ge=1)
    max_batch: int = Field(32, ge=1)
    cpus: Cpus = 0
    gpus: Gpus = 0

    @model_validator(mode="after")
    def _windows_in_order(self) -> VocoderSettings:
        if self.first_window > self.max_window:
            raise ValueError("first_window must not be larger than max_window")
        return self

    def schedule(self) -> WindowSchedule:
        """The window sizes as the vocoder takes them."""
        return WindowSchedule(self.first_window, self.window_growth, self.max_window)


class ModelSettings(_Settings):
    """One served model.

    Attributes:
        id: its name in the API.
        path: a model directory (docs/generation.md), or ``tiny:FAMILY``: a random model
            of that family, made where it is served. Its ``speech.json`` is also read where
            the application is built.
        voices: names that requests may use: some of the model's own, the first one in front,
            or, for a model that knows no voices, any names, which change nothing. None: all
            of the model's, or ``default``.
        normalizer: what is done to texts before the model reads them: ``english`` writes
            numbers, abbreviations, signs and markup out in words (docs/text.md), for models that
            were trained on words; ``none`` passes texts on as they are.
        replicas: engines, each with a vocoder of its own.
        max_concurrent_requests: per replica; further requests are refused with 429.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$")
    path: str = Field(min_length=1)
    voices: list[str] | None = Field(None, min_length=1)
    normalizer: Literal["none", "english"] = "none"
    replicas: int = Field(1, ge=1)
    max_concurrent_requests: int = Field(128, ge=1)
    engine: EngineSettings = EngineSettings()
    vocoder: VocoderSettings = VocoderSettings()

    @property
    def bundle(self) -> dict[str, float]:
        """Ray resources of a replica and its vocoder, which share a placement group."""
        cpus = self.engine.cpus + self.vocoder.cpus
        gpus = self.engine.gpus + self.vocoder.gpus
        return {"CPU": cpus} | ({"GPU": gpus} if gpus else {})


class ServiceSettings(_Settings):
    """HTTP limits and times.

    Attributes:
        max_input_characters: of the text of one request.
        max_body_bytes: of any request's body.
        max_duration_seconds: the largest ``max_duration_seconds`` of a request.
        retry_after_seconds: what a refused client is told to wait.
        accept_timeout_seconds: within this time a replica accepts a request or the
            client gets 503.
        drain_seconds: how long a stopping replica lets its requests finish; longer than
            the longest utterance.
        ingress_replicas: HTTP front ends.
    """

    max_input_characters: int = Field(4096, ge=1)
    max_body_bytes: int = Field(1 << 20, ge=1)
    max_duration_seconds: Seconds = 600.0
    retry_after_seconds: int = Field(2, ge=1)
    accept_timeout_seconds: Seconds = 5.0
    drain_seconds: Seconds = 60.0
    ingress_replicas: int = Field(1, ge=1)


class Settings(_Settings):
    """The whole application: ``models`` and ``service``."""

    models: list[ModelSettings] = Field(min_length=1)
    service: ServiceSettings = ServiceSettings()

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Settings:
        ids = [model.id for model in self.models]
        if len(set(ids)) != len(ids):
            raise ValueError("models: two models have the same id")
        return self
