"""Trains the language model on the codes of all shards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.fx.experimental._config as fx_config
from numpy.typing import NDArray
from torch import Tensor

from demo_voice.checkpoints import Checkpoint, learning_rate
from demo_voice.language_model import SpeechLanguageModel
from demo_voice.parallel import Group
from demo_voice.recipe import LanguageModelRecipe, Recipe
from demo_voice.rows import IGNORED, Example, build
from demo_voice.shards import Utterance, code_shards, read_codes
from demo_voice.tokenizer import tokenizer
from engine_adapter.families import FAMILIES
from engine_adapter.spec import StreamSpec

LANGUAGE_MODEL_FILE = "language-model.pt"
LOG_FILE = "language-model.jsonl"
_AVERAGE_EVERY, _AVERAGE_KEEP = 4, 0.996
ALONE = Group()
_WINDOW = 16  # a batch is drawn from so many times its number of neighbours in length


def spec() -> StreamSpec:
    """The family that is trained."""
    return FAMILIES["demo"]


def load_utterances(work: Path) -> list[Utterance]:
    """All utterances with codes."""
    return [u for index in code_shards(work) for u in read_codes(work, index)]


def frame_limit(step: int, recipe: LanguageModelRecipe) -> int:
    """Frames of the longest utterance that is shown at a step."""
    progress = min(1.0, step / max(1, round(recipe.steps * recipe.curriculum)))
    return round(recipe.first_frames + progress * (recipe.max_frames - recipe.first_frames))


@dataclass(frozen=True)
class Batch:
    """Examples of nearly equal length.

    Attributes:
        ids: int64 ``[batch, rows, streams]``, filled up with 0.
        targets: int64 ``[batch, rows, streams]``, filled up with ``IGNORED``.
        places: float32 ``[batch, rows]``, filled up with what is not a number.
    """

    ids: Tensor
    targets: Tensor
    places: Tensor


class Batches:
    """Batches drawn by seed and step, so that an interrupted run goes on as it would have."""

    def __init__(self, utterances: list[Utterance], recipe: Recipe) -> None:
        self._recipe = recipe
        sizes = recipe.language_model
        fitting = [u for u in utterances if len(u.codes) <= sizes.max_frames]
        self._utterances = sorted(fitting, key=lambda u: len(u.codes))
        self._frames = np.array([len(u.codes) for u in self._utterances])
        encoder = tokenizer()
        first = spec().text
        assert first is not None
        self._texts = [
            [first.first_id + i for i in encoder.encode(u.text).ids] for u in self._utterances
        ]

    def draw(self, step: int, part: int = 0) -> Batch:
        """One part of the batch of a step. Frames, not utterances, are equally likely.

        Raises:
            ValueError: no utterance is short enough for the step.
        """
        sizes = self._recipe.language_model
        random = np.random.default_rng((self._recipe.seed, step, part))
        usable = int(np.searchsorted(self._frames, frame_limit(step, sizes), side="right"))
        if usable == 0:
            raise ValueError(f"no utterance is as short as {frame_limit(step, sizes)} frames")
        share = np.cumsum(self._frames[:usable])
        pivot = int(np.searchsorted(share, random.uniform(0, share[-1]), side="right"))
        count = max(1, sizes.positions // (int(self._frames[pivot]) + 64))
        low = max(0, min(pivot - count * _WINDOW // 2, usable - count * _WINDOW))
        window = np.arange(low, min(usable, low + count * _WINDOW))
        chosen = random.choice(window, min(count, len(window)), replace=False)
        return collate(
            [self._example(int(i), prompted=random.random() >= sizes.dropout) for i in chosen]
        )

    def _example(self, index: int, *, prompted: bool) -> Example:
        one = self._utterances[index]
        return build(spec(), self._texts[index], one.voice, one.codes, prompted=prompted)

    def in_order(self) -> Iterator[Batch]:
        """Every utterance once, prompted, sixteen at a time."""
        for start in range(0, len(self._utterances), 16):
            indices = range(start, min(start + 16, len(self._utterances)))
            yield collate([self._example(i, prompted=True) for i in indices])


def collate(examples: list[Example]) -> Batch:
    """One batch of examples; the last row of each, only a target, is left out of ``ids``."""
    longest = max(len(e.targets) for e in examples)

    def stack(arrays: list[NDArray[Any]], fill: float) -> Tensor:
        shape = (len(arrays), longest, *arrays[0].shape[1:])
        out = np.full(shape, fill, dtype=arrays[0].dtype)
        for row, array in enumerate(arrays):
            out[row, : len(array)] = array
        return torch.from_numpy(out)

    return Batch(
        stack([e.ids[:-1] for e in examples], 0),
        stack([e.targets for e in examples], IGNORED),
        stack([e.places for e in examples], np.nan),
    )


def train(
    work: Path, recipe: Recipe, device: str, group: Group = ALONE
) -> Iterator[tuple[int, float]]:
    """Trains; yields (step, loss) and resumes where it was interrupted.

    The processes of a group come to the same weights; the first of them keeps and logs them.
    """
    sizes = recipe.language_model
    utterances = load_utterances(work)
    batches = Batches(utterances[sizes.validation :], recipe)
    validation = Batches(utterances[: sizes.validation], recipe)
    torch.manual_seed(recipe.seed)
    model = SpeechLanguageModel(spec(), sizes).to(device)
    average = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": sizes.weight_decay},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=sizes.rate,
        betas=(0.9, 0.98),
    )
    checkpoint = Checkpoint(work / LANGUAGE_MODEL_FILE)
    first = 0
    if state := checkpoint.load():
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        average, first = state["average"], state["step"]
    weights = torch.tensor(sizes.stream_weights, device=device)
    forward = _compile(model) if sizes.compiled else model
    for step in range(first, sizes.steps):
        for settings in optimizer.param_groups:
            settings["lr"] = learning_rate(
                step, steps=sizes.steps, warmup=sizes.warmup, decay=sizes.decay, peak=sizes.rate
            )
        optimizer.zero_grad()
        total = 0.0
        for part in group.share(sizes.parts):
            batch = batches.draw(step, part)
            losses, guide = _losses(model, forward, batch, device, sizes.guide_width)
            loss = (losses * weights).sum() / weights.sum() / sizes.parts
            if step < sizes.guide * sizes.steps:
                loss = loss + sizes.guide_weight / sizes.parts * guide
            loss.backward()
            total += float(loss.detach())
        group.sum_gradients(model.parameters())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % _AVERAGE_EVERY == 0:
            keep = min(_AVERAGE_KEEP, step / (step + 40 * _AVERAGE_EVERY))
            for name, tensor in model.state_dict().items():
                average[name].lerp_(tensor, 1 - keep)
        last = step + 1 == sizes.steps
        if group.rank == 0 and (checkpoint.due() or last):
            checkpoint.save(
                {
                    "step": step + 1,
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "average": average,
                }
            )
        if group.rank == 0 and (step % 500 == 499 or last):
            _log(work, step + 1, _validate(model, validation, device, sizes.guide_width))
        yield step, total * sizes.parts / len(group.share(sizes.parts))


def _compile(model: SpeechLanguageModel) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    # Sizes that are equal by chance, such as rows and streams, are to stay independent.
    fx_config.use_duck_shape = False
    return torch.compile(model, dynamic=True)


def _losses(
    model: SpeechLanguageModel,
    forward: Callable[[Tensor], tuple[Tensor, Tensor]],
    batch: Batch,
    device: str,
    guide_width: float,
) -> tuple[Tensor, Tensor]:
    """Cross-entropy per stream, and how far the guided heads look from the text."""
    ids, targets = batch.ids.to(device), batch.targets.to(device)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        hidden, attention = forward(ids)
        learned = (targets != IGNORED).any(-1)
        losses = model.losses(hidden[learned], targets[learned])
        return losses, model.guide(attention, batch.places.to(device), guide_width)


@torch.inference_mode()
def _validate(
    model: SpeechLanguageModel, validation: Batches, device: str, guide_width: float
) -> list[float]:
    """Mean cross-entropy per stream on what was kept from training; last, the guided heads."""
    parts = [_losses(model, model, batch, device, guide_width) for batch in validation.in_order()]
    losses = [torch.cat([streams, guide[None]]) for streams, guide in parts]
    return [round(float(x), 4) for x in torch.stack(losses).mean(0)]


def _log(work: Path, step: int, validation: list[float]) -> None:
    with (work / LOG_FILE).open("a") as file:
        file.write(json.dumps({"step": step, "validation": validation}) + "\n")
