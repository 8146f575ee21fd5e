"""The stages of the recipe, in order. Each finds what it has done and goes on from there."""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from demo_voice import codec, training
from demo_voice.export import export
from demo_voice.parallel import Group
from demo_voice.recipe import Recipe
from demo_voice.shards import synthesise
from deployments import whole_file

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
        whole_file.write(file, json.dumps(texts))
    synthesise(json.loads(file.read_text()), recipe, work, _cores())


def train(work: Path, recipe: Recipe) -> None:
    """Trains the decoder, then the language model.

    Without a GPU, as many processes as there are cores share each step of the language model:
    they are faster than the threads of one.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _show("decoder", recipe.codec.steps, partial(codec.train_decoder, work, recipe, device))
    size = 1 if device == "cuda" else max(1, min(_cores(), recipe.language_model.parts))
    torch.set_num_threads(max(1, _cores() // size))
    with _followers(work, recipe, size) as group:
        steps = partial(training.train, work, recipe, device, group)
        _show("language model", recipe.language_model.steps, steps)


@contextmanager
def _followers(work: Path, recipe: Recipe, size: int) -> Iterator[Group]:
    """The processes that train beside this one, until the end of the block."""
    if size == 1:
        yield training.ALONE
        return
    with tempfile.TemporaryDirectory() as folder:
        meeting = Path(folder) / "meeting"
        others = [
            multiprocessing.get_context("spawn").Process(
                target=_follow, args=(work, recipe, meeting, rank, size), daemon=True
            )
            for rank in range(1, size)
        ]
        for other in others:
            other.start()
        try:
            group = Group.join(meeting, 0, size)
            yield group
            group.leave()
        finally:
            for other in others:
                other.terminate()
                other.join()


def _follow(work: Path, recipe: Recipe, meeting: Path, rank: int, size: int) -> None:
    torch.set_num_threads(max(1, _cores() // size))
    for _ in training.train(work, recipe, "cpu", Group.join(meeting, rank, size)):
        pass


def _show(name: str, total: int, steps: Callable[[], Iterator[tuple[int, float]]]) -> None:
    """Runs a training to its end behind a bar with its smoothed loss."""
    smooth = None
    with tqdm(total=total, desc=name, unit="step") as bar:
        for step, loss in steps():
            smooth = loss if smooth is None else _SMOOTH * smooth + (1 - _SMOOTH) * loss
            bar.update(step + 1 - bar.n)
            bar.set_postfix(loss=f"{smooth:.3f}", refresh=False)


def _cores() -> int:
    return len(os.sched_getaffinity(0))
