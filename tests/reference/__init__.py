"""The slow reference of docs/generation.md: plain PyTorch, one request at a time.

It shares only data with the engine: the checkpoint reader, the spec's values and the
noise. What it generates is therefore evidence, not an echo.

Read in this order: ``model`` (rows to logits), ``sample`` (logits to one id), ``margin``
(how firm a decision was), ``generate`` (phases, rows, frames), ``requests`` (requests to
compare an engine on).
"""

from tests.reference.generate import Reference, ReferenceRequest, ReferenceResult
from tests.reference.requests import Case, Cases, stable_requests

__all__ = [
    "Case",
    "Cases",
    "Reference",
    "ReferenceRequest",
    "ReferenceResult",
    "stable_requests",
]
