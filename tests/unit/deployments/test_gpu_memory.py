"""Engine and vocoder on one GPU: what cannot fit is said before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import save_file

from deployments.metrics import emit
from deployments.metrics.sinks import Nowhere
from deployments.models.gpu_memory import (
    GpuMemoryError,
    require_room,
    require_vocoder_room,
    vocoder_bytes,
    weight_bytes,
)
from deployments.replica import engine_deployment
from deployments.replica.engine_deployment import EngineReplica
from deployments.settings import ModelSettings, TracingSettings
from vocoder_service.actor import VocoderActor

GIB = 2**30


def model(engine: dict[str, Any], vocoder: dict[str, Any] | None = None) -> ModelSettings:
    return ModelSettings.model_validate(
        {"id": "a", "path": "tiny:demo", "engine": engine, "vocoder": vocoder or {}}
    )


def test_by_default_both_fit_on_one_gpu() -> None:
    settings = model({"gpus": 0.7}, {"gpus": 0.3})
    assert settings.shares_gpu
    assert settings.bundle["GPU"] == 1


@pytest.mark.parametrize(
    ("engine", "vocoder", "named"),
    [
        ({"gpus": 0.8}, {"gpus": 0.3}, r"engine.gpus and vocoder.gpus: 0.8 and 0.3"),
        ({"gpus": 1.0}, {"gpus": 0.3}, r"engine.gpus and vocoder.gpus: 1 and 0.3"),
        (
            {"gpus": 0.7, "gpu_memory_utilization": 0.95},
            {"gpus": 0.3},
            r"engine.gpu_memory_utilization and vocoder.*: 0.95 and 0.05 are more than 0.97",
        ),
    ],
)
def test_a_split_that_cannot_be_is_refused(
    engine: dict[str, Any], vocoder: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValidationError, match=named):
        model(engine, vocoder)


def test_two_whole_gpus_share_nothing() -> None:
    settings = model({"gpus": 1.0, "gpu_memory_utilization": 0.97}, {"gpus": 1.0})
    assert not settings.shares_gpu


def test_weights_and_a_cache_must_fit_into_the_share() -> None:
    settings = model({"gpus": 0.7, "gpu_memory_utilization": 0.3}, {"gpus": 0.3})
    require_room(settings, weights=15 * GIB, device=80 * GIB)
    with pytest.raises(GpuMemoryError) as caught:
        require_room(settings, weights=22 * GIB, device=80 * GIB)
    message = str(caught.value)
    assert message.startswith(
        "engine.gpu_memory_utilization: 0.3 of the GPU's 80.0 GiB is 24.0 GiB"
    )
    assert message.endswith("At least 0.33 is needed, and 0.92 is possible")


def test_what_no_share_would_hold_is_said_too() -> None:
    settings = model({"gpus": 0.7}, {"gpus": 0.3})
    with pytest.raises(GpuMemoryError, match="does not fit on this GPU"):
        require_room(settings, weights=16 * GIB, device=16 * GIB)


@pytest.mark.parametrize(
    ("engine", "held"),
    [
        ({"dtype": "bfloat16"}, 2 * 8 + 12),
        ({"dtype": "float32"}, 4 * 8 + 12),
        ({"quantization": "fp8"}, 8 + 12),
        ({"tensor_parallel_size": 2, "gpus": 2}, (2 * 8 + 12) // 2),
    ],
)
def test_weights_are_counted_as_a_worker_holds_them(
    tmp_path: Path, engine: dict[str, Any], held: int
) -> None:
    """Whatever the dtype of their files; what is packed stays as it is."""
    save_file({"a": torch.zeros(5), "b": torch.zeros(3).half()}, tmp_path / "model-1.safetensors")
    save_file({"c": torch.zeros(3, dtype=torch.int32)}, tmp_path / "model-2.safetensors")
    (tmp_path / "config.json").write_text("{}")
    assert weight_bytes(tmp_path, model(engine).engine) == held


def test_what_hears_is_counted_as_it_is_held(tmp_path: Path) -> None:
    """In float32, whatever its file has: Bagpiper's audio tower is published in bfloat16."""
    for folder, dtype in (("codec", torch.float32), ("audio_encoder", torch.bfloat16)):
        (tmp_path / folder).mkdir()
        save_file({"a": torch.zeros(3, 5, dtype=dtype)}, tmp_path / folder / "model.safetensors")
    save_file({"b": torch.zeros(7)}, tmp_path / "audio_encoder" / "adaptor.safetensors")
    save_file({"c": torch.zeros(1000)}, tmp_path / "model.safetensors")  # the engine's
    assert vocoder_bytes(tmp_path) == 4 * (15 + 15 + 7)
    (tmp_path / "codec" / "exp").mkdir()
    (tmp_path / "codec" / "exp" / "360epoch.pth").write_bytes(b"x" * 100)
    assert vocoder_bytes(tmp_path) == 4 * (15 + 15 + 7) + 100


def test_codec_and_encoders_must_fit_into_the_vocoders_share() -> None:
    settings = model(
        {"gpus": 0.7, "gpu_memory_utilization": 0.8}, {"gpus": 0.3, "gpu_memory_utilization": 0.05}
    )
    require_vocoder_room(settings, weights=3 * GIB, device=80 * GIB)
    with pytest.raises(GpuMemoryError) as caught:
        require_vocoder_room(settings, weights=3 * GIB, device=40 * GIB)
    message = str(caught.value)
    assert message.startswith(
        "vocoder.gpu_memory_utilization: 0.05 of the GPU's 40.0 GiB is 2.0 GiB; codec and encoders"
    )
    assert message.endswith("At least 0.09 is needed, and 0.17 is possible beside the engine's")


@pytest.mark.parametrize(
    ("device", "named"),
    [
        (2**20, "engine.gpu_memory_utilization: .* the weights of a take"),
        (8 * GIB, "vocoder.gpu_memory_utilization: .* codec and encoders of a take"),
    ],
)
async def test_a_replica_that_cannot_fit_starts_nothing(
    device: int, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = model({"gpus": 0.7, "gpu_memory_utilization": 0.5}, {"gpus": 0.3})
    monkeypatch.setattr(VocoderActor, "options", Mock(side_effect=AssertionError("it starts")))
    monkeypatch.setattr(engine_deployment, "_gpu_bytes", lambda: device)
    monkeypatch.setattr(engine_deployment.logs, "configure", lambda: None)
    monkeypatch.setattr(engine_deployment, "RaySink", Nowhere)
    replica = EngineReplica.__new__(EngineReplica)
    with emit.using(Nowhere()), pytest.raises(GpuMemoryError, match=named):
        await replica.__init__(settings, TracingSettings())  # type: ignore[misc]


@pytest.mark.parametrize(
    ("engine", "vocoder", "device", "share"),
    [
        ({"gpus": 0.7, "gpu_memory_utilization": 0.8}, {"gpus": 0.3}, "cuda", 0.05),
        ({"gpus": 1}, {"gpus": 1}, "cuda", None),
        ({"gpus": 1}, {}, "cpu", None),
    ],
)
async def test_the_vocoder_gets_its_part_of_the_gpu_and_no_more_of_its_memory(
    engine: dict[str, Any],
    vocoder: dict[str, Any],
    device: str,
    share: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = model(engine, vocoder)
    options = Mock(return_value=Mock(remote=Mock(side_effect=InterruptedError)))
    monkeypatch.setattr(VocoderActor, "options", options)
    monkeypatch.setattr(engine_deployment, "_gpu_bytes", lambda: 80 * GIB)
    monkeypatch.setattr(engine_deployment.logs, "configure", lambda: None)
    monkeypatch.setattr(engine_deployment, "RaySink", Nowhere)
    replica = EngineReplica.__new__(EngineReplica)
    with emit.using(Nowhere()), pytest.raises(InterruptedError):
        await replica.__init__(settings, TracingSettings())  # type: ignore[misc]
    options.assert_called_once_with(num_cpus=0, num_gpus=vocoder.get("gpus", 0))
    made = options.return_value.remote.call_args.kwargs
    assert (made["device"], made["memory_share"]) == (device, share)
