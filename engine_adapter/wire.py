"""What travels from the front end to the engine core in ``SamplingParams.extra_args``.

vLLM's message carries the prompt's stream 0; everything else a request is stands here,
as plain values that msgpack keeps.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine_adapter.embedded import EmbeddedRows
from engine_adapter.request import ResolvedRequest
from engine_adapter.sampling_defaults import SamplingDefaults
from engine_adapter.spec import Output

KEY = "speech"


@dataclass(frozen=True)
class WireRequest:
    """A resolved request as the scheduler and the runner read it.

    Attributes:
        auxiliary: prompt ids of streams 1 and up, int32 ``[rows, streams - 1]`` as bytes;
            empty where all are 0.
        embedded_positions, embeddings: the prompt's embedded rows, packed.
        unconditional: stream-0 ids of the guidance prompt; None where the family pads
            zeros to the conditional length, or without guidance.
        room: rows the context may have.
        leader: for an unconditional row, the id of the request it belongs to.
    """

    output: Output
    seed: int
    cfg_scale: float
    room: int
    sampling: dict[str, tuple[float, int, float]]
    auxiliary: bytes = b""
    embedded_positions: bytes = b""
    embeddings: bytes = b""
    unconditional: list[int] | None = None
    unconditional_auxiliary: bytes = b""
    max_frames: int | None = None
    max_text_tokens: int | None = None
    leader: str | None = None

    @classmethod
    def of(cls, request: ResolvedRequest, room: int) -> WireRequest:
        """The message for a resolved request whose context may have ``room`` rows."""
        unconditional = request.unconditional
        positions, embeddings = (b"", b"") if request.embedded is None else request.embedded.pack()
        return cls(
            output=request.output,
            seed=request.seed,
            cfg_scale=request.cfg_scale,
            room=room,
            sampling={m: (s.temperature, s.top_k, s.top_p) for m, s in request.sampling.items()},
            auxiliary=pack_auxiliary(request.prompt),
            embedded_positions=positions,
            embeddings=embeddings,
            unconditional=None if unconditional is None else unconditional[:, 0].tolist(),
            unconditional_auxiliary=(
                b"" if unconditional is None else pack_auxiliary(unconditional)
            ),
            max_frames=request.max_frames,
            max_text_tokens=request.max_text_tokens,
        )

    @property
    def embedded(self) -> EmbeddedRows | None:
        """The prompt's embedded rows; None if there are none."""
        return EmbeddedRows.unpack(self.embedded_positions, self.embeddings)

    @property
    def salt(self) -> str | None:
        """See :func:`prompt_salt`."""
        return prompt_salt(self.auxiliary, self.embedded_positions, self.embeddings)

    @property
    def guided(self) -> bool:
        """Whether audio rows of this request need an unconditional partner."""
        return self.cfg_scale > 1.0

    def sampling_of(self, modality: str) -> SamplingDefaults:
        """Sampling of ``text`` or ``audio`` rows."""
        return SamplingDefaults(*self.sampling[modality])

    def to_extra_args(self) -> dict[str, Any]:
        """For ``SamplingParams.extra_args``."""
        return {KEY: asdict(self)}

    @classmethod
    def from_extra_args(cls, extra_args: dict[str, Any] | None) -> WireRequest:
        """The inverse of :meth:`to_extra_args`.

        Raises:
            ValueError: the request did not come through :class:`SpeechEngine`.
        """
        try:
            return cls(**(extra_args or {})[KEY])
        except (KeyError, TypeError) as error:
            raise ValueError("the request carries no speech arguments; use SpeechEngine") from error


def pack_auxiliary(rows: NDArray[np.int32]) -> bytes:
    """Streams 1 and up of int32 ``[n, streams]`` as bytes; empty where all are 0."""
    auxiliary = rows[:, 1:]
    return np.ascontiguousarray(auxiliary).tobytes() if auxiliary.any() else b""


def unpack_auxiliary(data: bytes, num_streams: int) -> NDArray[np.int32] | None:
    """The inverse of :func:`pack_auxiliary`: int32 ``[n, streams - 1]``, None for zeros."""
    if not data:
        return None
    return np.frombuffer(data, dtype=np.int32).reshape(-1, num_streams - 1)


def prompt_salt(*packed: bytes) -> str | None:
    """Prefix-cache salt of a prompt, from its packed auxiliary streams and embedded rows.

    vLLM hashes the ids of stream 0 alone: prompts that differ in anything else must not
    share blocks. None where there is nothing else, so that plain prompts do share.
    """
    if not any(packed):
        return None
    digest = hashlib.sha256()
    for part in packed:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
