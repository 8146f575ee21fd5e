"""The vocoder service in a process of its own, reached through Ray."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from ray import serve

from deployments.builder import build
from deployments.settings import ModelSettings
from vocoder_service.actor import CodecInfo, Decoded, VocoderActor
from vocoder_service.codec import load_codec
from vocoder_service.service import StreamAbortedError, UnknownStreamError
from vocoder_service.tiny import make_tiny_dac
from vocoder_service.vocoder import Vocoder

pytestmark = pytest.mark.serve

NUM_CODEBOOKS = 4
GPUS = 2
"""That the cluster pretends to have."""


@pytest.fixture(scope="module")
def codec_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("codec")
    make_tiny_dac(directory, seed=0, num_codebooks=NUM_CODEBOOKS, codebook_size=64)
    return directory


@pytest.fixture(scope="module")
def actor(codec_directory: Path) -> Iterator[Any]:
    starts_ray = not ray.is_initialized()  # else another module's cluster serves as well
    if starts_ray:
        ray.init(address="local", include_dashboard=False, num_cpus=2, num_gpus=GPUS)
    actor = VocoderActor.remote(str(codec_directory), 16)
    yield actor
    ray.kill(actor)
    if starts_ray:
        ray.shutdown()


def random_codes(frames: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(64, size=(frames, NUM_CODEBOOKS), dtype=np.int32)


async def say(actor: Any, stream_id: str, codes: np.ndarray) -> bytes:
    await actor.open.remote(stream_id)
    pcm = b""
    for begin in range(0, len(codes), 7):
        pcm += (await actor.push.remote(stream_id, codes[begin : begin + 7])).pcm
    rest: Decoded = await actor.finish.remote(stream_id)
    return pcm + rest.pcm


async def test_the_actor_is_ready_once_it_knows_its_codec(
    actor: Any, codec_directory: Path
) -> None:
    context = load_codec(codec_directory).right_context
    assert await actor.ready.remote() == CodecInfo(16000, 320, NUM_CODEBOOKS, 64, context)
    await actor.check_health.remote()


async def test_concurrent_streams_equal_their_one_shot_decodes(
    actor: Any, codec_directory: Path
) -> None:
    codes = [random_codes(10 + 9 * seed, seed) for seed in range(8)]

    heard = await asyncio.gather(*(say(actor, f"s{i}", c) for i, c in enumerate(codes)))

    vocoder = Vocoder(load_codec(codec_directory))
    for pcm, stream in zip(heard, codes, strict=True):
        expected = vocoder.decode_all(stream)
        actual = np.frombuffer(pcm, "<i2")
        assert actual.shape == expected.shape
        assert np.abs(actual.astype(int) - expected).max() <= 1
    stats = await actor.stats.remote()
    assert stats.live_streams == 0
    assert stats.windows_decoded >= len(codes)


async def test_errors_keep_their_type_across_processes(actor: Any) -> None:
    with pytest.raises(UnknownStreamError, match="'nobody' is not open"):
        await actor.push.remote("nobody", random_codes(1, 0))

    await actor.open.remote("a")
    with pytest.raises(ValueError, match="stream 0: code 64 of frame 0 is outside"):
        await actor.push.remote("a", np.full((1, NUM_CODEBOOKS), 64))
    await actor.abort.remote("a")


async def test_abort_during_a_push_frees_the_stream(actor: Any) -> None:
    await actor.open.remote("a")
    push = actor.push.remote("a", random_codes(3000, 0))
    await actor.abort.remote("a")

    with pytest.raises(StreamAbortedError):
        await push
    assert (await actor.stats.remote()).live_streams == 0


def _place() -> tuple[list[int], str | None]:
    """The GPUs of this process, and the placement group that it is in."""
    group = ray.util.get_current_placement_group()
    return list(ray.get_gpu_ids()), None if group is None else group.id.hex()


class _Child:
    """Stands for a vocoder."""

    def place(self) -> tuple[list[int], str | None]:
        return _place()


class _Parent:
    """Stands for an engine replica, which makes its vocoder as a plain child."""

    def __init__(self, settings: ModelSettings) -> None:
        vocoder = settings.vocoder
        self._child = (
            ray.remote(_Child).options(num_cpus=vocoder.cpus, num_gpus=vocoder.gpus).remote()
        )

    async def places(self) -> list[tuple[list[int], str | None]]:
        return [_place(), await self._child.place.remote()]


def test_engine_and_vocoder_share_the_gpu_of_their_bundle(actor: Any) -> None:
    """Deployed as the application deploys them. Of a bundle's GPU nothing is left for others."""
    settings = {
        "id": "demo",
        "path": "tiny:demo",
        "engine": {"cpus": 0.5, "gpus": 0.7},
        "vocoder": {"cpus": 0, "gpus": 0.3},
    }
    [engines] = build({"models": [settings]})._bound_deployment.init_args[1]
    stand_in = engines._bound_deployment.options(func_or_class=_Parent)
    serve.start(proxy_location="Disabled")
    try:
        handle = serve.run(stand_in.bind(ModelSettings.model_validate(settings)), route_prefix=None)
        engine, vocoder = handle.places.remote().result(timeout_s=60)
        assert engine == vocoder
        assert len(engine[0]) == 1
        assert engine[1] is not None
        [bundle] = ray.util.placement_group_table()[engine[1]]["bundles"].values()
        assert bundle == {"CPU": 0.5, "GPU": 1}
        assert ray.available_resources()["GPU"] == GPUS - 1
    finally:
        serve.shutdown()
