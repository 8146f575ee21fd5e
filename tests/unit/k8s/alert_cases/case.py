"""A case of the alerts, and the names that several tables of them use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

QUEUE = "ray_speechlm_queue_seconds_bucket{%s, priority=P, le="
# A release in another namespace.
ELSEWHERE = "namespace='elsewhere', application='speechlm', deployment='engine-tts'"


@dataclass(frozen=True)
class Case:
    """A service that differs from a good one, and the alerts that fire after a time.

    Attributes:
        series: what is different; None: the metric is not there.
        after: minutes.
    """

    name: str
    series: Mapping[str, str | None]
    after: int
    fires: tuple[str, ...] = ()
