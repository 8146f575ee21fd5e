"""The stages of the recipe, in order. Each finds what it has done and goes on from there."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from demo_voice import codec, training
from demo_voice.export import export
from demo_voice.recipe import Recipe
from demo_voice.shards import synthesise

_TEXTS_FILE = "texts.json"
_SMOOTH = 0.98  # of the loss that is shown


def make(work: Path, recipe: Recipe, directory: Path, texts: list[str] | None = None) -> None:
    """From nothing to a model directory.

    Args:
        texts: what to learn from; None draws as many as the recipe says.
    """
    work.mkdir(parents=True, exist_ok=True)
    speak(work, recipe, texts)
    codec.fit_quantizer(work, recipe)
    codec.encode_shards(work, recipe)
    train(work, recipe)
    export(work, recipe, directory)


def speak(work: Path, recipe: Recipe, texts: list[str] | None = None) -> None:
    """Has the teacher speak all texts."""
    file = work / _TEXTS_FILE
    if not file.exists():
        if texts is None:
            from demo_voice.texts import training_texts

            texts = training_texts(recipe.texts, recipe.seed)
        file.write_text(json.dumps(texts))
    synthesise(json.loads(file.read_text()), recipe, work, _cores())


def train(work: Path, recipe: Recipe) -> None:
    """Trains the decoder and the language model: on the GPU one after the other, else at once.

    They do not depend on each other, and one core each is better used than two by either.
    """
    if torch.cuda.is_available():
        _train_decoder(work, recipe, "cuda")
        _train_language_model(work, recipe, "cuda")
        return
    torch.set_num_threads(max(1, _cores() // 2))
    other = multiprocessing.get_context("spawn").Process(
        target=_train_decoder, args=(work, recipe, "cpu", max(1, _cores() // 2))
    )
    other.start()
    try:
        _train_language_model(work, recipe, "cpu")
    except BaseException:
        other.terminate()
        raise
    finally:
        other.join()
    if other.exitcode != 0:
        raise RuntimeError(f"training the decoder failed with exit code {other.exitcode}")


def _train_decoder(work: Path, recipe: Recipe, device: str, threads: int | None = None) -> None:
    if threads is not None:
        torch.set_num_threads(threads)
    steps = partial(codec.train_decoder, work, recipe, device)
    _show("decoder", recipe.codec.steps, steps, position=1)


def _train_language_model(work: Path, recipe: Recipe, device: str) -> None:
    steps = partial(training.train, work, recipe, device)
    _show("language model", recipe.language_model.steps, steps, position=0)


def _show(
    name: str, total: int, steps: Callable[[], Iterator[tuple[int, float]]], position: int
) -> None:
    """Runs a training to its end behind a bar with its smoothed loss."""
    smooth = None
    with tqdm(total=total, desc=name, position=position, unit="step") as bar:
        for step, loss in steps():
            smooth = loss if smooth is None else _SMOOTH * smooth + (1 - _SMOOTH) * loss
            bar.update(step + 1 - bar.n)
            bar.set_postfix(loss=f"{smooth:.3f}", refresh=False)


def _cores() -> int:
    return len(os.sched_getaffinity(0))
