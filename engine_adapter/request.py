"""What is asked of the engine and what it answers."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engine_adapter.embedded import EmbeddedRows
from engine_adapter.sampling_defaults import MAX_COUNT, MAX_TEMPERATURE, SamplingDefaults
from engine_adapter.spec import (
    MAX_CFG_SCALE,
    OUTPUTS,
    TEXT_SLOT,
    VOICE_SLOT,
    Output,
    StreamSpec,
)

Prompt = Sequence[int] | Sequence[Sequence[int]]
FinishReason = Literal["stop", "length"]
MAX_SEED = 2**63 - 1


class RequestError(ValueError):
    """A request that cannot be served as it is asked.

    Attributes:
        param: the name of the field at fault.
    """

    def __init__(self, param: str, message: str) -> None:
        super().__init__(f"{param}: {message}")
        self.param = param


class GenerationError(RuntimeError):
    """A request that was accepted and then could not be finished."""


class EngineUnavailable(RuntimeError):
    """The engine is dead; no request can be served."""


@dataclass(frozen=True)
class SpeechRequest:
    """One request. Exactly one of ``text`` and ``prompt_ids`` is given.

    Attributes:
        prompt_ids: rows of the prompt, as plain ids (stream 0) or one id per stream.
        embedded: those of these rows that are embeddings instead, with ids of 0.
        voice: of a ``text``, one of the family's; None is the first, where it has any.
        output: what to write.
        cfg_scale: guidance scale; 1 is off. None is the family's, where audio is written.
        unconditional_ids: the guidance prompt, where the family's own is not wanted.
        seed: None draws one.
        temperature, top_k, top_p: for every modality the request writes; None is the
            family's default of each modality. ``top_k`` 0 is off.
        max_frames: codec frames at most; None is what the model and the cache hold.
        max_text_tokens: text ids at most; None likewise.
    """

    text: str | None = None
    prompt_ids: Prompt | None = None
    embedded: EmbeddedRows | None = None
    voice: str | None = None
    output: Output = "audio"
    cfg_scale: float | None = None
    unconditional_ids: Prompt | None = None
    seed: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_frames: int | None = None
    max_text_tokens: int | None = None


@dataclass(frozen=True)
class Chunk:
    """What one or more engine steps added to a request.

    Attributes:
        rows: generated ids as the model saw them, int32 ``[n, streams]``.
        codes: frames that became complete, aligned 0-based codes, int32 ``[m, streams]``.
        text: text that became complete.
        finish_reason: set on the last chunk.
        preemptions: times the request was preempted so far; exact on the last chunk.
    """

    rows: NDArray[np.int32]
    codes: NDArray[np.int32]
    text: str
    finish_reason: FinishReason | None = None
    preemptions: int = 0


@dataclass(frozen=True)
class Result:
    """A whole request: all chunks joined. Shapes as in :class:`Chunk`."""

    raw_ids: NDArray[np.int32]
    codes: NDArray[np.int32]
    text: str
    finish_reason: FinishReason
    seed: int
    preemptions: int = 0


@dataclass(frozen=True)
class ResolvedRequest:
    """A request checked against a family: every default filled in, prompts as rows.

    Attributes:
        prompt: int32 ``[rows, streams]``, without the bridge that opens audio.
        embedded: those of its rows that are embeddings.
        unconditional: int32 ``[rows, streams]``, or None where there is no guidance or
            the family's rule is ``zeros`` (its length is known only when audio begins).
    """

    prompt: NDArray[np.int32]
    output: Output
    cfg_scale: float
    unconditional: NDArray[np.int32] | None
    seed: int
    sampling: dict[Literal["text", "audio"], SamplingDefaults] = field(hash=False)
    max_frames: int | None = None
    max_text_tokens: int | None = None
    embedded: EmbeddedRows | None = None

    @property
    def guided(self) -> bool:
        """Whether the request takes a pair of rows while it writes audio."""
        return self.cfg_scale > 1.0


def resolve(
    request: SpeechRequest, spec: StreamSpec, encoded_text: Sequence[int] | None
) -> ResolvedRequest:
    """Checks a request against a family and fills in its defaults.

    Args:
        encoded_text: the model ids of ``request.text``; None if it has none.

    Raises:
        RequestError: naming the field at fault.
    """
    if request.output not in OUTPUTS or request.output not in spec.prompts:
        raise RequestError(
            "output",
            f"{request.output!r} is not one of {', '.join(spec.outputs)} ({spec.family})",
        )
    if request.text is None and request.prompt_ids is None:
        raise RequestError("text", "is missing; give text, or prompt_ids")
    if request.text is not None and request.prompt_ids is not None:
        raise RequestError("prompt_ids", "give either text or prompt_ids, not both")
    if request.prompt_ids is not None:
        if request.voice is not None:
            raise RequestError("voice", "is part of a prompt; give it with text")
        prompt = prompt_rows("prompt_ids", request.prompt_ids, spec)
    else:
        if not encoded_text:
            raise RequestError("text", "is empty")
        prompt = prompt_rows("text", _text_prompt(request, spec, encoded_text), spec)
    scale = _scale(request, spec)
    if "audio" not in request.output:
        if scale > 1.0:
            raise RequestError("cfg_scale", "guidance applies to audio; this output has none")
        if request.max_frames is not None:
            raise RequestError("max_frames", "limits audio; this output has none")
    if "text" not in request.output and request.max_text_tokens is not None:
        raise RequestError("max_text_tokens", "limits text; this output has none")
    return ResolvedRequest(
        prompt=prompt,
        output=request.output,
        cfg_scale=scale,
        unconditional=_unconditional(request, spec, guided=scale > 1.0),
        seed=resolve_seed(request.seed),
        sampling=_sampling(request, spec),
        max_frames=_count("max_frames", request.max_frames),
        max_text_tokens=_count("max_text_tokens", request.max_text_tokens),
        embedded=_embedded(request.embedded, spec, prompt),
    )


def _text_prompt(
    request: SpeechRequest, spec: StreamSpec, encoded_text: Sequence[int]
) -> list[int]:
    """The family's prompt for the request's output, its slots filled."""
    template = spec.prompts[request.output]
    slots: dict[str, Sequence[int]] = {TEXT_SLOT: encoded_text}
    if VOICE_SLOT in template:
        voice = next(iter(spec.voices)) if request.voice is None else request.voice
        if not isinstance(voice, str) or voice not in spec.voices:
            raise RequestError("voice", f"{voice!r:.80} is not one of {', '.join(spec.voices)}")
        slots[VOICE_SLOT] = spec.voices[voice]
    elif request.voice is not None:
        raise RequestError("voice", f"{spec.family} has none for the output {request.output!r}")
    ids: list[int] = []
    for item in template:
        ids.extend([item] if isinstance(item, int) else slots[item])
    return ids


def _scale(request: SpeechRequest, spec: StreamSpec) -> float:
    if request.cfg_scale is not None:
        scale = _number("cfg_scale", request.cfg_scale, low=1.0, high=MAX_CFG_SCALE)
    else:
        scale = spec.cfg_scale if "audio" in request.output else 1.0
    # The step mixes in float32: what rounds to 1 there is no guidance.
    return float(np.float32(scale))


def prompt_rows(param: str, ids: Prompt, spec: StreamSpec) -> NDArray[np.int32]:
    """A prompt as int32 ``[rows, streams]``, every id checked against its stream.

    Raises:
        RequestError: the prompt is empty, ragged, or an id is out of range.
    """
    if not _is_sequence(ids):
        raise RequestError(param, f"must be a list of ids or of rows, got {ids!r:.80}")
    if len(ids) == 0:
        raise RequestError(param, "is empty")
    rows = np.zeros((len(ids), spec.num_streams), dtype=np.int64)
    for position, row in enumerate(ids):
        values: list[Any] = list(row) if isinstance(row, Sequence | np.ndarray) else [row]
        if len(values) not in (1, spec.num_streams) or not all(map(_is_int, values)):
            raise RequestError(
                param, f"row {position} must be one id or {spec.num_streams} ids, got {row!r}"
            )
        if any(not 0 <= v < spec.vocab_size for v in values):
            raise RequestError(
                param, f"row {position}: ids must be in 0..{spec.vocab_size - 1}, got {row!r}"
            )
        rows[position, : len(values)] = values
    for index, stream in enumerate(spec.streams[1:], start=1):
        column = rows[:, index]
        inside = (column >= stream.first_id) & (column < stream.end)
        wrong = np.flatnonzero(~(inside | (column == 0) | (column == stream.pad_id)))
        if wrong.size:
            raise RequestError(
                param,
                f"row {wrong[0]}: id {column[wrong[0]]} is not an id of stream {index} "
                f"({stream.first_id}..{stream.end - 1}, {stream.pad_id} or 0)",
            )
    return rows.astype(np.int32)


def _embedded(
    rows: EmbeddedRows | None, spec: StreamSpec, prompt: NDArray[np.int32]
) -> EmbeddedRows | None:
    """Embedded rows, checked against the prompt that they are part of, in the types that are sent
    to the engine's core."""
    if rows is None:
        return None
    if not spec.hears_embeddings:
        raise RequestError("embedded", f"{spec.family} takes no embeddings")
    where, embeddings = np.asarray(rows.positions), np.asarray(rows.embeddings)
    if where.dtype.kind != "i" or embeddings.dtype.kind != "f":
        raise RequestError("embedded", "positions must be integers, embeddings floating-point")
    if where.ndim != 1 or len(where) == 0 or embeddings.ndim != 2 or len(embeddings) != len(where):
        raise RequestError("embedded", "must have one embedding for each of its positions")
    if where[0] < 0 or where[-1] >= len(prompt) or (np.diff(where) < 1).any():
        raise RequestError("embedded", "positions must be ascending ones of the prompt")
    if prompt[where].any():
        raise RequestError("embedded", "a row of the prompt has both ids and an embedding")
    with np.errstate(over="ignore"):
        packed = np.ascontiguousarray(embeddings, dtype=np.float32)
    if not np.isfinite(packed).all():
        raise RequestError("embedded", "an embedding is not finite")
    return EmbeddedRows(np.ascontiguousarray(where, dtype=np.int32), packed)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def _is_int(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _number(param: str, value: Any, *, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RequestError(param, f"must be a number, got {value!r}")
    if not low <= value <= high:  # not a number is not either
        raise RequestError(param, f"must be in {low:g}..{high:g}, got {value!r:.40}")
    return float(value)


def _count(param: str, value: Any, *, low: int = 1, high: int = MAX_COUNT) -> int | None:
    if value is None:
        return None
    if not _is_int(value) or not low <= value <= high:
        raise RequestError(param, f"must be a whole number in {low}..{high}, got {value!r:.40}")
    return int(value)


def draw_seed() -> int:
    """A seed for a request that brings none."""
    return secrets.randbelow(2**31)


def resolve_seed(value: object) -> int:
    """The seed to use; None draws one.

    Raises:
        RequestError: it is no whole number of 0 to ``MAX_SEED``.
    """
    if value is None:
        return draw_seed()
    seed = _count("seed", value, low=0, high=MAX_SEED)
    assert seed is not None
    return seed


def _sampling(
    request: SpeechRequest, spec: StreamSpec
) -> dict[Literal["text", "audio"], SamplingDefaults]:
    temperature, top_p = request.temperature, request.top_p
    if temperature is not None:
        temperature = _number("temperature", temperature, low=0.0, high=MAX_TEMPERATURE)
    if top_p is not None:
        top_p = _number("top_p", top_p, low=0.0, high=1.0)
        if top_p == 0.0:
            raise RequestError("top_p", "must be above 0")
    top_k = _count("top_k", request.top_k, low=0)
    return {
        modality: SamplingDefaults(
            temperature=default.temperature if temperature is None else temperature,
            top_k=default.top_k if top_k is None else top_k,
            top_p=default.top_p if top_p is None else top_p,
        )
        for modality, default in spec.sampling.items()
    }


def _unconditional(
    request: SpeechRequest, spec: StreamSpec, *, guided: bool
) -> NDArray[np.int32] | None:
    if request.unconditional_ids is not None:
        rows = prompt_rows("unconditional_ids", request.unconditional_ids, spec)
        return rows if guided else None
    if not guided or spec.unconditional == "zeros":
        return None
    if spec.unconditional == "none":
        raise RequestError(
            "cfg_scale",
            f"{spec.family} has no unconditional prompt; above 1 it needs unconditional_ids",
        )
    return prompt_rows("unconditional_ids", spec.unconditional_prompt, spec)
