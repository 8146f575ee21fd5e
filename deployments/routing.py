"""The request router of models with several replicas, in every front end. The policy is
``cfg_pairing.routing``."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from ray.serve.request_router import (
    FIFOMixin,
    PendingRequest,
    ReplicaID,
    ReplicaResult,
    RequestRouter,
    RunningReplica,
)

from cfg_pairing.routing import Demand, Load, LoadReport, Loads, rank
from deployments.calls import dead_replicas
from deployments.calls.answer_messages import AnswerCall
from deployments.calls.demand import demand_of
from deployments.calls.messages import SpeechCall

ROUTER = "deployments.routing:RowRouter"
REPORT_SECONDS = 1.0
"""Between two reports of a replica."""


class RowRouter(FIFOMixin, RequestRouter):
    """Ranks replicas by the rows and the KV memory that they have left."""

    def initialize_state(self, **kwargs: Any) -> None:
        """
        Args:
            rows: of a step, of one replica.
            cfg_scale: guidance of audio where a request does not say.
            samples_per_row: of audio that the model hears.
        """
        self._loads: Loads[str] = Loads(int(kwargs["rows"]))
        self._default_scale = float(kwargs["cfg_scale"])
        self._samples_per_row = int(kwargs["samples_per_row"])

    def update_replicas(self, replicas: list[RunningReplica]) -> None:
        """Forgets replicas that are gone; Serve also calls it when there is a new report."""
        self._loads.retain(replica.replica_id.unique_id for replica in replicas)
        self._hear(replicas)
        super().update_replicas(replicas)

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """All of them, each for itself, the best first. Serve passes over those that are full."""
        self._hear(candidate_replicas)
        by_id = {replica.replica_id.unique_id: replica for replica in candidate_replicas}
        now = time.monotonic()
        loads = {key: self._load(key, now) for key in by_id}
        demand = self._demand(pending_request)
        request_id = "" if pending_request is None else pending_request.metadata.request_id
        ranked = rank(loads, demand, request_id)
        if pending_request is not None and ranked and demand.rows:
            self._loads.intend(id(pending_request), ranked[0], demand.rows, now)
        return [[by_id[key]] for key in ranked]

    def on_request_routed(
        self, pending_request: PendingRequest, replica_id: ReplicaID, result: ReplicaResult
    ) -> None:
        """Counts the rows of a request that a replica has taken."""
        self._loads.routed(
            id(pending_request),
            replica_id.unique_id,
            pending_request.metadata.internal_request_id,
            self._demand(pending_request).rows,
        )

    def on_request_completed(self, replica_id: ReplicaID, internal_request_id: str) -> None:
        """Counts them no longer."""
        self._loads.completed(replica_id.unique_id, internal_request_id, time.monotonic())

    def _load(self, replica: str, now: float) -> Load:
        load = self._loads.load(replica, now)
        return replace(load, doubtful=True) if dead_replicas.is_dead(replica) else load

    def _hear(self, replicas: list[RunningReplica]) -> None:
        now = time.monotonic()
        for replica in replicas:
            if replica.routing_stats:
                report = LoadReport(**replica.routing_stats)
                self._loads.report(replica.replica_id.unique_id, report, now)

    def _demand(self, request: PendingRequest | None) -> Demand:
        call = request.args[0] if request is not None and request.args else None
        if isinstance(call, SpeechCall | AnswerCall):
            return demand_of(call, self._default_scale, self._samples_per_row)
        return Demand(0)  # a question about health, or a clip to be encoded
