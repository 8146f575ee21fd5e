"""Serve's router with our policy: calls in, ranked replicas out, and what is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from ray.serve._private.common import (
    DeploymentHandleSource,
    DeploymentID,
    ReplicaID,
    RequestMetadata,
)
from ray.serve.request_router import PendingRequest

from cfg_pairing.routing import LoadReport
from deployments.calls import dead_replicas
from deployments.calls.messages import SpeechCall, Utterance
from deployments.routing import RowRouter

DEPLOYMENT = DeploymentID("engine", "speechlm")
CALL = SpeechCall("id", (Utterance("Hello."),), "rms")


@dataclass
class Replica:
    """What the router sees of a replica."""

    name: str
    routing_stats: dict[str, Any] = field(default_factory=dict)

    @property
    def replica_id(self) -> ReplicaID:
        return ReplicaID(self.name, DEPLOYMENT)

    def report(self, rows: int, serial: int = 1, kv_share: float = 0.0) -> None:
        self.routing_stats = asdict(LoadReport(serial, rows, 8, kv_share))


@pytest.fixture
def replicas() -> list[Replica]:
    return [Replica(name) for name in "abc"]


@pytest.fixture
async def router() -> RowRouter:
    made = RowRouter(deployment_id=DEPLOYMENT, handle_source=DeploymentHandleSource.REPLICA)
    made.initialize_state(rows=8, cfg_scale=1.0, samples_per_row=320)
    return made


def pending(request_id: str, call: SpeechCall | None = CALL) -> PendingRequest:
    args = [] if call is None else [call]
    return PendingRequest(args, {}, RequestMetadata(request_id, f"internal {request_id}"))


async def choose(router: RowRouter, replicas: list[Any], request: PendingRequest) -> str:
    ranked = await router.choose_replicas(replicas, request)
    assert sorted(r.name for [r] in ranked) == sorted(r.name for r in replicas), "each once"
    return str(ranked[0][0].name)


async def test_it_goes_where_the_reports_say(router: RowRouter, replicas: list[Replica]) -> None:
    for replica, rows in zip(replicas, (5, 2, 4), strict=True):
        replica.report(rows)
    assert await choose(router, replicas, pending("1")) == "b"


async def test_a_burst_is_spread_before_anybody_has_answered(
    router: RowRouter, replicas: list[Replica]
) -> None:
    guided = replace(CALL, cfg_scale=2.0)
    requests = [pending(str(i), guided) for i in range(12)]
    chosen = Counter([await choose(router, replicas, request) for request in requests])
    assert set(chosen.values()) == {4}


async def test_a_request_counts_until_it_has_ended(
    router: RowRouter, replicas: list[Replica]
) -> None:
    [first, *others] = replicas
    request = pending("1", replace(CALL, cfg_scale=2.0))
    router.on_request_routed(request, first.replica_id, None)
    assert await choose(router, replicas, pending("2", None)) != "a"
    for other in others:
        router.on_request_routed(pending(other.name), other.replica_id, None)
    router.on_request_completed(first.replica_id, "internal 1")
    assert await choose(router, replicas, pending("3", None)) == "a"


async def test_refusals_that_end_at_once_leave_nothing(
    router: RowRouter, replicas: list[Replica]
) -> None:
    """Serve tells of an end when it comes, and of the beginning when the front end gets there."""
    for number in range(10):
        request = pending(str(number))
        router.on_request_completed(replicas[0].replica_id, f"internal {number}")
        router.on_request_routed(request, replicas[0].replica_id, None)
    for other in replicas[1:]:
        router.on_request_routed(pending(other.name), other.replica_id, None)
    assert await choose(router, replicas, pending("next", None)) == "a"


async def test_who_has_told_the_front_end_of_a_dead_engine_comes_last(
    router: RowRouter, replicas: list[Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it had reported before."""
    monkeypatch.setattr(dead_replicas, "_dead", set())
    for replica, rows in zip(replicas, (0, 5, 5), strict=True):
        replica.report(rows)
    assert await choose(router, replicas, pending("1")) == "a"
    dead_replicas.note("a")
    assert {await choose(router, replicas, pending(str(i))) for i in range(9)} == {"b", "c"}


async def test_a_recorded_voice_stays_where_it_is(
    router: RowRouter, replicas: list[Replica]
) -> None:
    voice = replace(CALL, speaker=np.ones((500, 8), np.int32))
    homes = {await choose(router, replicas, pending(str(i), voice)) for i in range(2)}
    assert len(homes) == 1


async def test_questions_take_no_rows(router: RowRouter, replicas: list[Replica]) -> None:
    for i in range(9):
        await choose(router, replicas[:1], pending(str(i), None))
    assert router._loads.load("a", now=0).rows == 0


async def test_without_a_request_all_are_ranked(router: RowRouter, replicas: list[Replica]) -> None:
    assert len(await router.choose_replicas(replicas, None)) == 3
