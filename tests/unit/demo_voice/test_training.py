"""The language model's training: what it learns is what is served, and it can be interrupted."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from demo_voice.checkpoints import Checkpoint, learning_rate
from demo_voice.language_model import SpeechLanguageModel, backbone_config
from demo_voice.recipe import LanguageModelRecipe, Recipe
from demo_voice.rows import IGNORED, build
from demo_voice.shards import Utterance, write_codes
from demo_voice.training import (
    LANGUAGE_MODEL_FILE,
    LOG_FILE,
    Batches,
    collate,
    frame_limit,
    spec,
    train,
)
from engine_adapter.checkpoint import CONFIG_FILE, WEIGHTS_FILE
from tests.reference.model import Model

SMALL = LanguageModelRecipe(
    hidden=64,
    layers=1,
    heads=1,
    kv_heads=1,
    feed_forward=64,
    positions=256,
    compiled=False,
    steps=6,
    warmup=2,
    first_frames=20,
    max_frames=40,
    validation=4,
)
RECIPE = Recipe(language_model=SMALL)


def utterances(count: int) -> list[Utterance]:
    random = np.random.default_rng(0)
    return [
        Utterance(
            "word " * random.integers(1, 4),
            ("rms", "slt")[i % 2],
            np.empty(0, dtype=np.int16),
            random.integers(0, 256, (random.integers(10, 50), 8)).astype(np.uint8),
        )
        for i in range(count)
    ]


def test_the_loss_is_that_of_the_served_definition(tmp_path: Path) -> None:
    """Of docs/generation.md as the reference implements it: heads, stream embeddings, pads."""
    torch.manual_seed(5)
    model = SpeechLanguageModel(spec(), SMALL)
    with torch.no_grad():
        model.stream_embedding.weight.mul_(20)  # or it would hardly count
    (tmp_path / CONFIG_FILE).write_text(json.dumps(backbone_config(spec(), SMALL)))
    spec().save(tmp_path)
    save_file(model.state_dict(), tmp_path / WEIGHTS_FILE, metadata={"format": "pt"})
    one = utterances(1)[0]
    example = build(spec(), [100, 101], one.voice, one.codes, prompted=True)
    batch = collate([example])
    learned = (batch.targets != IGNORED).any(-1)
    with torch.inference_mode():
        ours = model.losses(model(batch.ids)[0][learned], batch.targets[learned])

    reference = Model(tmp_path)
    context = reference.context()
    total = torch.zeros(8)
    for row, targets in zip(example.ids[:-1].tolist(), example.targets.tolist(), strict=True):
        context.append([row])
        for stream, target in enumerate(targets):
            if target != IGNORED:
                logits = reference.audio_logits(context.hidden(), stream)
                total[stream] -= torch.log_softmax(logits.float(), -1)[target]
    counts = torch.tensor((example.targets != IGNORED).sum(0))
    torch.testing.assert_close(ours, total / counts, rtol=1e-4, atol=1e-4)


def test_an_interrupted_training_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("demo_voice.checkpoints.SECONDS_BETWEEN", 0)
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
        write_codes(tmp_path / name, 0, utterances(24))
    whole = list(train(tmp_path / "whole", RECIPE, "cpu"))
    parts = list(islice(train(tmp_path / "parts", RECIPE, "cpu"), 3))
    parts += list(train(tmp_path / "parts", RECIPE, "cpu"))
    assert parts == whole
    assert [step for step, _ in whole] == list(range(6))
    one, other = (
        Checkpoint(tmp_path / name / LANGUAGE_MODEL_FILE).load() for name in ("whole", "parts")
    )
    assert one is not None
    assert other is not None
    for kind in ("model", "average"):
        for name, tensor in one[kind].items():
            assert torch.equal(tensor, other[kind][name])
    assert json.loads((tmp_path / "whole" / LOG_FILE).read_text())["step"] == 6


def test_batches_keep_to_their_size_and_to_the_curriculum() -> None:
    batches = Batches(utterances(200), RECIPE)
    for step in range(6):
        batch = batches.draw(step)
        frames = (batch.targets[:, :, 1] != IGNORED).sum(1)
        assert frames.max() <= frame_limit(step, SMALL)
        assert len(frames) <= SMALL.positions // (int(frames.min()) + 1)
        again = batches.draw(step)
        assert torch.equal(again.ids, batch.ids)
    assert frame_limit(0, SMALL) == 20
    assert frame_limit(5, SMALL) == 40


def test_guided_heads_are_to_look_at_what_is_spoken() -> None:
    text = [16 + byte for byte in b"one, two"]
    example = build(spec(), text, "rms", utterances(1)[0].codes, prompted=True)
    places = example.places[~np.isnan(example.places)]
    first = example.ids[:, 0].tolist().index(text[0])
    assert len(places) == len(utterances(1)[0].codes)
    assert (np.diff(places) >= 0).all()
    assert (places[0], places[-1]) == (first, first + len(text) - 1)
    assert np.isnan(build(spec(), text, "rms", utterances(1)[0].codes, prompted=False).places).all()

    rows = len(example.places)
    aligned, astray = torch.zeros(1, 1, rows, rows), torch.zeros(1, 1, rows, rows)
    for row in np.flatnonzero(~np.isnan(example.places)):
        aligned[0, 0, row, int(example.places[row])] = 1
        astray[0, 0, row, row] = 1
    expected = torch.from_numpy(example.places)[None]
    assert float(SpeechLanguageModel.guide(aligned, expected, 3.0)) == pytest.approx(0, abs=1e-3)
    assert float(SpeechLanguageModel.guide(astray, expected, 3.0)) > 1


def test_the_rate_rises_stays_and_falls_to_nothing() -> None:
    rates = [learning_rate(step, steps=100, warmup=10, decay=0.5, peak=2.0) for step in range(101)]
    assert rates[:10] == pytest.approx([0.2 * (i + 1) for i in range(10)])
    assert rates[10:51] == [2.0] * 41
    assert rates[50:] == pytest.approx([2.0 * (100 - i) / 50 for i in range(50, 101)])
