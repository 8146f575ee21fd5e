"""Every setting of the service, checked in one place; those of the guards are beside them.

In ``serve_config.yaml`` they are the ``args`` of the application. A key that is not
known, and a value of the wrong type, is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from cfg_pairing.admission import ClassPolicy, Priority
from cfg_pairing.autoscaling import ScalingPolicy
from deployments.guards.settings import GuardSettings
from deployments.strict_settings import Seconds, StrictSettings
from deployments.validation import HTTP_URL, MODEL_ID
from engine_adapter.engine_config import EngineConfig, SettingError
from vocoder_service.schedule import WindowSchedule

INGRESS = "Ingress"
"""The deployment of the HTTP front ends."""
Cpus = Annotated[float, Field(ge=0)]
Gpus = Annotated[float, Field(ge=0)]

SHORTEST_CONTEXT = 64
"""Rows of a request: a prompt of a few words and a moment of audio."""
ENGINE_GPU_MEMORY = 0.92
"""Share of a GPU's memory that vLLM takes where nothing is said."""
SHARED_GPU_MEMORY = 0.97
"""Of a GPU that two processes share; the rest is what CUDA takes for each."""

_MAKING_SPEED = 2.0  # seconds of audio that a busy engine makes of one request in a second


class EngineSettings(StrictSettings):
    """The vLLM engine of one replica (docs/engine-settings.md).

    Attributes:
        dtype: of weights and KV cache.
        max_rows: rows of a step; a guided request takes two while it writes audio.
        kv_blocks: size of the KV cache; None: what fits on the GPU, and 1 GiB on CPUs.
        max_batched_tokens: prompt and generated tokens of a step; None: vLLM's choice.
        max_model_len: rows of one request, prompt included; None: what the model allows.
        prefix_cache: whether requests share the KV cache of equal beginnings.
        gpu_memory_utilization: share of the GPU's memory; the vocoder needs the rest.
            None: vLLM's choice.
        tensor_parallel_size: workers that share each layer, on a GPU each.
        quantization: form of the backbone's weights; None: what the model's ``config.json`` says.
        cpus, gpus: Ray resources of the replica; a single GPU may be shared with the vocoder.
    """

    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    max_rows: int = Field(64, ge=1)
    kv_blocks: int | None = Field(None, ge=1)
    max_batched_tokens: int | None = Field(None, ge=1)
    max_model_len: int | None = Field(None, ge=SHORTEST_CONTEXT)
    prefix_cache: bool = True
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1)
    tensor_parallel_size: int = Field(1, ge=1)
    quantization: str | None = Field(None, min_length=1)
    cpus: Cpus = 1
    gpus: Gpus = 0

    def config(self, model: Path) -> EngineConfig:
        """The same for the engine.

        Raises:
            SettingError: they contradict each other; the message begins with a setting's name.
        """
        workers = self.tensor_parallel_size
        if self.gpus and (self.gpus != workers if workers > 1 else self.gpus > 1):
            raise SettingError(
                f"gpus: must be tensor_parallel_size ({workers}), a GPU for each worker"
            )
        if self.gpu_memory_utilization is not None and not self.gpus:
            raise SettingError("gpu_memory_utilization: there is no GPU; kv_blocks sets the size")
        return EngineConfig(str(model), **self.model_dump(exclude={"cpus", "gpus"}))


class VocoderSettings(StrictSettings):
    """The vocoder actor beside each engine replica.

    Attributes:
        first_window: frames of the first piece of audio: small, for an early start.
        window_growth: factor from one piece to the next.
        max_window: frames of the largest piece: large, for throughput.
        max_batch: pieces decoded together.
        gpu_memory_utilization: share of the memory that it may take of a GPU which it shares with
            the engine.
        cpus, gpus: Ray resources of the vocoder; with ``gpus`` 0 it runs on CPUs.
    """

    first_window: int = Field(8, ge=1)
    window_growth: float = Field(1.5, ge=1)
    max_window: int = Field(64, ge=1)
    max_batch: int = Field(32, ge=1)
    gpu_memory_utilization: float = Field(0.05, gt=0, le=1)
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


class PrioritySettings(StrictSettings):
    """What the requests of a class get (docs/scaling.md).

    Attributes:
        weight: share of the rows that become free, against those of the other classes.
        max_wait_seconds: a request that would probably wait longer is refused with 429.
    """

    weight: float = Field(gt=0)
    max_wait_seconds: float = Field(ge=0)

    @property
    def policy(self) -> ClassPolicy:
        """The same for the queue."""
        return ClassPolicy(self.weight, self.max_wait_seconds)


class AdmissionSettings(StrictSettings):
    """The queue of each replica, for requests that find no rows free.

    Attributes:
        realtime, standard, batch: the classes; ``standard`` is what a request is that does not
            say.
        max_waiting: requests at most, of all classes together.
    """

    realtime: PrioritySettings = PrioritySettings(weight=8, max_wait_seconds=2)
    standard: PrioritySettings = PrioritySettings(weight=4, max_wait_seconds=10)
    batch: PrioritySettings = PrioritySettings(weight=1, max_wait_seconds=60)
    max_waiting: int = Field(512, ge=0)

    @property
    def classes(self) -> dict[Priority, ClassPolicy]:
        """The classes by name."""
        return {
            "realtime": self.realtime.policy,
            "standard": self.standard.policy,
            "batch": self.batch.policy,
        }


class AutoscalingSettings(StrictSettings):
    """How many engines a model has, by what is asked of it (docs/scaling.md).

    Attributes:
        min_replicas: 0: none while nothing is asked, and the first request has to come again
            once one has started.
        max_replicas: at most so many.
        high_use: share of all rows that are needed above which there are more replicas.
        low_use: share below which, with one replica less, there are fewer.
        queue_seconds: a request that has waited longer brings more replicas.
        clear_seconds: time in which all audio that is owed should be made.
        up_seconds: time for which more must be wanted before there are more.
        down_seconds: time for which fewer must do before there are fewer.
        smooth_seconds: time over which rows are averaged for that.
        idle_seconds: time without a request, after which the last replica goes, if it may.
    """

    min_replicas: int = Field(1, ge=0)
    max_replicas: int = Field(ge=1)
    high_use: float = Field(0.8, gt=0, le=1)
    low_use: float = Field(0.7, gt=0, le=1)
    queue_seconds: Seconds = 1.0
    clear_seconds: Seconds = 30.0
    up_seconds: float = Field(10.0, ge=0)
    down_seconds: Seconds = 180.0
    smooth_seconds: Seconds = 10.0
    idle_seconds: Seconds = 900.0

    @model_validator(mode="after")
    def _in_order(self) -> AutoscalingSettings:
        if self.min_replicas > self.max_replicas:
            raise ValueError("min_replicas must not be larger than max_replicas")
        if self.low_use > self.high_use:
            raise ValueError("low_use must not be larger than high_use")
        return self

    @property
    def policy(self) -> ScalingPolicy:
        """The same for the policy."""
        return ScalingPolicy(**self.model_dump())


class ModelSettings(StrictSettings):
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
        autoscaling: None: there are always ``replicas``; else those must not be set.
        max_concurrent_requests: per replica, however many rows are free; further requests wait
            or are refused, see ``admission``.
        surge_percent: how many more replicas, of those there are, may run while a new version
            replaces the old. 0: an old one stops first, and with a single replica the service
            pauses; above 0 there must be room for one more, or the old ones stay for ever.
    """

    id: str = Field(pattern=MODEL_ID)
    path: str = Field(min_length=1)
    voices: list[str] | None = Field(None, min_length=1)
    normalizer: Literal["none", "english"] = "none"
    replicas: int = Field(1, ge=1)
    autoscaling: AutoscalingSettings | None = None
    max_concurrent_requests: int = Field(128, ge=1)
    admission: AdmissionSettings = AdmissionSettings()
    surge_percent: int = Field(0, ge=0, le=100)
    engine: EngineSettings = EngineSettings()
    vocoder: VocoderSettings = VocoderSettings()

    @property
    def deployment(self) -> str:
        """Of its engines; it names log files."""
        return f"engine-{self.id.replace('/', '--')}"

    @model_validator(mode="after")
    def _one_number_of_replicas(self) -> ModelSettings:
        if self.autoscaling is not None and self.replicas != 1:
            raise ValueError(
                "replicas: is not used with autoscaling, which has min_replicas and max_replicas"
            )
        return self

    @model_validator(mode="after")
    def _one_gpu_is_enough(self) -> ModelSettings:
        if not self.shares_gpu:
            if "gpu_memory_utilization" in self.vocoder.model_fields_set:
                raise ValueError(
                    "vocoder.gpu_memory_utilization: the vocoder shares no GPU with the engine"
                )
            return self
        if self.engine.gpus + self.vocoder.gpus > 1:
            raise ValueError(
                f"engine.gpus and vocoder.gpus: {self.engine.gpus:g} and {self.vocoder.gpus:g} "
                "are more than the one GPU they share; give each a part of it"
            )
        engine = self.engine.gpu_memory_utilization or ENGINE_GPU_MEMORY
        vocoder = self.vocoder.gpu_memory_utilization
        if round(engine + vocoder, 6) > SHARED_GPU_MEMORY:
            raise ValueError(
                f"engine.gpu_memory_utilization and vocoder.gpu_memory_utilization: {engine:g} and "
                f"{vocoder:g} are more than {SHARED_GPU_MEMORY} of the GPU they share"
            )
        return self

    @property
    def shares_gpu(self) -> bool:
        """Whether engine and vocoder are on one GPU: either takes only a part of one."""
        gpus = (self.engine.gpus, self.vocoder.gpus)
        return min(gpus) > 0 and any(each != int(each) for each in gpus)

    @property
    def most_replicas(self) -> int:
        """That there may be at a time, while no new version replaces them."""
        return self.replicas if self.autoscaling is None else self.autoscaling.max_replicas

    @property
    def bundle(self) -> dict[str, float]:
        """Ray resources of a replica and its vocoder, which share a placement group."""
        cpus = self.engine.cpus + self.vocoder.cpus
        gpus = self.engine.gpus + self.vocoder.gpus
        return {"CPU": cpus} | ({"GPU": gpus} if gpus else {})


class ServiceSettings(StrictSettings):
    """HTTP limits and times.

    Attributes:
        max_input_characters: length of the text of one request.
        max_body_bytes: size of the body of a request without a file.
        max_upload_bytes: size of the body of a request that may hold audio.
        max_duration_seconds: length of the audio of an answer; a request may ask for less.
        max_stream_seconds: length of the audio of a WebSocket, as it is heard.
        max_stream_characters: text that may wait to be spoken on a WebSocket.
        max_chat_characters: length of all texts of a conversation together.
        max_audio_seconds: length of the audio that a request brings.
        max_voice_seconds, max_voice_bytes: length and size of the recording of a voice.
        max_voices: voices that may be stored.
        store: file of the stored voices and of the audio that conversations may refer to; made
            if it is missing. Front ends of one machine share it.
        answer_seconds: how long the audio of an answer can be referred to.
        max_answers: answers whose audio is kept; the oldest goes first.
        retry_after_seconds: what a refused client is told to wait.
        accept_timeout_seconds: within this time a replica accepts a request, or the client gets
            429 if replicas answer others, and otherwise 503.
        drain_seconds: how long a stopping service, or replica, lets its requests finish.
        stream_idle_seconds: after this time without a message and anything to speak, a
            WebSocket is closed.
        ingress_replicas: HTTP front ends.
        front_end_resource: resource of Ray that only nodes have where front ends and the limiter
            may run, since their files are there. None: they run anywhere.
    """

    max_input_characters: int = Field(4096, ge=1)
    max_body_bytes: int = Field(1 << 20, ge=1)
    max_upload_bytes: int = Field(25 * 2**20, ge=1)
    max_duration_seconds: Seconds = 600.0
    max_stream_seconds: Seconds = 1800.0
    max_stream_characters: int = Field(1 << 16, ge=1)
    max_chat_characters: int = Field(1 << 16, ge=1)
    max_audio_seconds: Seconds = 600.0
    max_voice_seconds: Seconds = 30.0
    max_voice_bytes: int = Field(10 * 2**20, ge=1)
    max_voices: int = Field(100, ge=0)
    store: str = Field(".data/store.sqlite3", min_length=1)
    answer_seconds: Seconds = 3600.0
    max_answers: int = Field(10_000, ge=1)
    retry_after_seconds: int = Field(2, ge=1)
    accept_timeout_seconds: Seconds = 5.0
    drain_seconds: Seconds = 300.0
    stream_idle_seconds: Seconds = 300.0
    ingress_replicas: int = Field(1, ge=1)
    front_end_resource: str | None = Field(None, min_length=1)

    @property
    def drain_warning(self) -> str | None:
        """What whoever starts the service should know of ``drain_seconds``; None: nothing."""
        if self.drain_seconds >= self.max_duration_seconds / _MAKING_SPEED:
            return None
        return (
            f"service.drain_seconds: in {self.drain_seconds:g} s an answer of "
            f"max_duration_seconds ({self.max_duration_seconds:g}) may not be finished; it is cut "
            "when its replica stops"
        )

    @property
    def front_end_options(self) -> dict[str, Any]:
        """Ray's options for an actor that belongs to the front ends."""
        resource = self.front_end_resource
        return {"num_cpus": 0} | ({} if resource is None else {"resources": {resource: 1}})


class TracingSettings(StrictSettings):
    """Spans of requests (docs/metrics.md).

    Attributes:
        endpoint: address of a collector that takes OTLP over HTTP,
            ``http://host:4318/v1/traces`` for instance. None: no spans.
        share: of requests that have spans, where the client does not say.
    """

    endpoint: str | None = Field(None, pattern=HTTP_URL)
    share: float = Field(1.0, ge=0, le=1)


class Settings(StrictSettings):
    """The whole application."""

    models: list[ModelSettings] = Field(min_length=1)
    service: ServiceSettings = ServiceSettings()
    guards: GuardSettings = GuardSettings()
    tracing: TracingSettings = TracingSettings()

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Settings:
        ids = [model.id for model in self.models]
        if len(set(ids)) != len(ids):
            raise ValueError("models: two models have the same id")
        return self
