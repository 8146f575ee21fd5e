"""The recipe of the demonstration voice in miniature: every stage, for a minute."""

import asyncio
from pathlib import Path

import numpy as np
import pytest
import torch

from demo_voice import codec, pipeline, training
from demo_voice.export import export
from demo_voice.recipe import CodecRecipe, LanguageModelRecipe, Recipe
from engine_adapter.engine import EngineConfig, SpeechEngine
from engine_adapter.request import Result, SpeechRequest
from vocoder_service.codec import load_codec

pytestmark = pytest.mark.engine

RECIPE = Recipe(
    shard=8,
    codec=CodecRecipe(fit_frames=1500, width=32, steps=40, warmup=5, crop=16, batch=2),
    language_model=LanguageModelRecipe(
        hidden=64,
        layers=2,
        heads=1,
        kv_heads=1,
        feed_forward=128,
        parts=1,
        positions=1024,
        compiled=False,
        steps=60,
        warmup=5,
        first_frames=208,
        validation=4,
    ),
)
TEXTS = [
    "The kettle is on.",
    "Where did you put the blue cup?",
    "Nobody saw the train leave, not even the driver.",
    "Good morning.",
    "Twenty one people came to the party.",
    "We could walk along the river.",
    "My brother plays the violin badly.",
    "Close the window, please!",
    "It rained for three days.",
    "The baker sells warm bread at seven.",
    "Which of these roads goes to the harbor?",
    "A green bird sat in the apple tree.",
    "She forgot her keys again.",
    "Call me when you are home.",
    "The lamp over the table is broken.",
    "This soup needs a little salt.",
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[float]]]:
    """A work folder after all stages but the last, and the losses of both trainings."""
    work = tmp_path_factory.mktemp("work")
    pipeline.speak(work, RECIPE, TEXTS)
    codec.fit_quantizer(work, RECIPE)
    codec.encode_shards(work, RECIPE)
    torch.set_num_threads(2)
    return work, {
        "decoder": [loss for _, loss in codec.train_decoder(work, RECIPE, "cpu")],
        "language model": [loss for _, loss in training.train(work, RECIPE, "cpu")],
    }


@pytest.mark.parametrize("part", ["decoder", "language model"])
def test_the_loss_falls(trained: tuple[Path, dict[str, list[float]]], part: str) -> None:
    losses = trained[1][part]
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:5])


def test_the_result_loads_in_the_engine_and_speaks(
    trained: tuple[Path, dict[str, list[float]]], tmp_path: Path
) -> None:
    export(trained[0], RECIPE, tmp_path / "model")
    config = EngineConfig(model=str(tmp_path / "model"), dtype="float32", max_rows=4, kv_blocks=64)

    async def speak() -> Result:
        engine = SpeechEngine(config)
        try:
            request = SpeechRequest(text="Good morning.", voice="slt", seed=1, max_frames=30)
            return await engine.generate(engine.prepare(request))
        finally:
            engine.shutdown()

    result = asyncio.run(speak())
    assert 1 <= len(result.codes) <= 30
    decoder = load_codec(tmp_path / "model" / "codec")
    wave = decoder.decode(torch.from_numpy(result.codes.T[None].astype(np.int64)))
    assert wave.shape == (1, decoder.num_samples(len(result.codes)))
    assert float(wave.abs().max()) > 0.01


def test_everything_made_is_kept(trained: tuple[Path, dict[str, list[float]]]) -> None:
    """Run again, the recipe finds it all done."""
    work = trained[0]
    before = {file: file.stat().st_mtime_ns for file in work.iterdir()}
    pipeline.speak(work, RECIPE)
    codec.fit_quantizer(work, RECIPE)
    codec.encode_shards(work, RECIPE)
    assert list(codec.train_decoder(work, RECIPE, "cpu")) == []
    assert list(training.train(work, RECIPE, "cpu")) == []
    assert {file: file.stat().st_mtime_ns for file in work.iterdir()} == before
