"""vLLM's scheduler with guided requests as atomic pairs. The policy is policy.py.

Extension points of vLLM 0.32 used here are listed in docs/architecture.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from vllm.v1.core.sched.interface import PauseState
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, FinishReason
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from cfg_pairing.ledger import PairLedger
from cfg_pairing.policy import (
    Capacity,
    StepOrder,
    Unit,
    blocks_needed,
    may_admit,
    next_victim,
    order_rows,
)
from cfg_pairing.prefix_cache import keep_generated_blocks_private
from cfg_pairing.step_times import StepTimes
from engine_adapter.phases import Finish
from engine_adapter.step import StepOutput
from engine_adapter.wire import WireRequest, prompt_salt

_FINISHED = {
    Finish.STOP: RequestStatus.FINISHED_STOPPED,
    Finish.LENGTH: RequestStatus.FINISHED_LENGTH_CAPPED,
}
# Looking up a member of an enum takes long, for every row of every step.
_RUNS = RequestStatus.RUNNING
_GOES_ON = int(Finish.RUNNING)
_COMPANION_SUFFIX = "#unconditional"


class PairScheduler(Scheduler):
    """Schedules units: plain requests, and guided ones that are two rows in audio."""

    _pause_state: PauseState

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ledger = PairLedger()
        self._units: dict[str, Unit[Request]] = {}  # by the leader's id
        self._unit_of: dict[str, Unit[Request]] = {}  # by any row's id
        self._arrivals = 0
        self._step_times = StepTimes()
        self._step_began = 0.0
        self._outcomes = dict.fromkeys(("finished", "aborted", "failed"), 0)
        self._preemptions = 0
        self._frames = 0
        self._block_hasher: Any = None
        self._stepping_pairs: list[Unit[Request]] = []
        self._output: StepOutput | None = None
        self._finishes: list[int] = []  # by row of the batch
        self._row_of: dict[str, int] = {}

    # Arrival and end

    def add_request(self, request: Request) -> None:
        """Queues a unit; a guided audio request brings its second row along."""
        wire = _wire(request)
        self._block_hasher = request._block_hasher
        self._queue_row(request)
        unit = Unit(request, self._arrivals, guided=wire.guided)
        self._arrivals += 1
        self._units[request.request_id] = self._unit_of[request.request_id] = unit
        if wire.guided and wire.output == "audio":
            self._add_companion(unit)

    def _queue_row(self, request: Request) -> None:
        keep_generated_blocks_private(request, self.hash_block_size)
        super().add_request(request)

    def _add_companion(self, unit: Unit[Request]) -> None:
        """Queues the unconditional row: its own prompt, or zeros as long as the leader's.

        Both rows generate ``audio_begin``, the last row the leader knows once it wrote
        text, so that row is not part of the companion's prompt.
        """
        leader, wire = unit.leader, _wire(unit.leader)
        length = leader.num_tokens - (1 if leader.num_output_tokens else 0)
        params = leader.sampling_params.clone()
        params.extra_args = WireRequest(
            output="audio",
            seed=wire.seed,
            cfg_scale=wire.cfg_scale,
            room=wire.room,
            sampling=wire.sampling,
            auxiliary=wire.unconditional_auxiliary,
            leader=leader.request_id,
        ).to_extra_args()
        companion = Request(
            request_id=leader.request_id + _COMPANION_SUFFIX,
            client_index=leader.client_index,
            prompt_token_ids=[0] * length if wire.unconditional is None else wire.unconditional,
            sampling_params=params,
            pooling_params=None,
            arrival_time=leader.arrival_time,
            priority=leader.priority,
            cache_salt=prompt_salt(wire.unconditional_auxiliary),
            block_hasher=self._block_hasher,
        )
        self._queue_row(companion)
        unit.companion, unit.lead = companion, length - companion.num_tokens
        self._unit_of[companion.request_id] = unit

    def finish_requests(
        self, request_ids: str | Iterable[str] | None, finished_status: RequestStatus
    ) -> list[Request]:
        """Ends whole units; returns the leaders that ended."""
        if isinstance(request_ids, str):
            request_ids = [request_ids]
        ids = list(self._units) if request_ids is None else request_ids
        units = {id(u): u for i in ids if (u := self._unit_of.get(i))}.values()
        super().finish_requests([r.request_id for u in units for r in u.rows], finished_status)
        aborted = finished_status == RequestStatus.FINISHED_ABORTED
        for unit in units:
            self._forget(unit, "aborted" if aborted else "failed")
        return [unit.leader for unit in units]

    def _forget(self, unit: Unit[Request], outcome: str) -> None:
        for row in unit.rows:
            del self._unit_of[row.request_id]
        del self._units[unit.leader.request_id]
        self._outcomes[outcome] += 1
        if unit.guided and unit.was_admitted:
            self.ledger.count(outcome)

    # Scheduling

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """Parks, preempts and orders whole units, then lets vLLM schedule rows."""
        self._step_began = time.monotonic()
        units = self._running_units()
        order, preempted = self._make_room(units)
        for row in order.parked:
            row.next_decode_eligible_step = self.current_step + 2
        self.running[:] = [*order.stepping, *order.prefilling, *order.parked]
        self._stepping_pairs = order.pairs
        pause = self._pause_state
        if preempted and pause == PauseState.UNPAUSED:
            # What was just given up must not be taken back in the same step.
            self._pause_state = PauseState.PAUSED_NEW
        output = super().schedule(throttle_prefills)
        self._pause_state = pause
        self._note_admissions(output)
        output.speech_stats = self.speech_stats()
        return output

    def _running_units(self) -> list[Unit[Request]]:
        """Units with a running row, in order of arrival."""
        units: dict[int, Unit[Request]] = {}
        for row in self.running:
            # A row the runner held back computed its last known row without sampling: it
            # does so again, together with its partner.
            if row.num_computed_tokens >= row.num_tokens:
                row.num_computed_tokens = row.num_tokens - 1
            unit = self._unit_of[row.request_id]
            units[unit.order] = unit
        for unit in units.values():
            _refresh(unit)
        return [units[order] for order in sorted(units)]

    def _make_room(self, units: list[Unit[Request]]) -> tuple[StepOrder[Request], bool]:
        """Preempts the youngest units until every one left can take its step."""
        preempted = False
        order = order_rows(units)
        while len(units) > 1 and self._is_stuck(order):
            victim = next_victim(units)
            units.remove(victim)
            self._preempt_unit(victim)
            preempted = True
            order = order_rows(units)
        if preempted:
            self._sort_waiting()
        return order, preempted

    def _is_stuck(self, order: StepOrder[Request]) -> bool:
        if order.active:
            needed = blocks_needed(
                order, self.block_size, self.max_num_scheduled_tokens, self._held_blocks
            )
            return needed > self.kv_cache_manager.block_pool.get_num_free_blocks()
        # Every row waits for a partner, and the first of these needs a slot and blocks.
        head = self._unit_of[self.waiting.peek_request().request_id]
        return not may_admit(head, self._capacity())

    def _held_blocks(self, row: Request) -> int:
        return len(self.kv_cache_manager.get_block_ids(row.request_id)[0])

    def _capacity(self) -> Capacity:
        return Capacity(
            rows=self.max_num_active_reqs - len(self.running),
            blocks=self.kv_cache_manager.block_pool.get_num_free_blocks(),
            running_rows=len(self.running),
            block_size=self.block_size,
        )

    def _preempt_unit(self, unit: Unit[Request]) -> None:
        for row in reversed(unit.running_rows):
            self.running.remove(row)
            self._preempt_request(row, time.monotonic())
        _refresh(unit)
        self._preemptions += 1
        if unit.guided:
            self.ledger.count("preempted")

    def _sort_waiting(self) -> None:
        """Restores the order of arrival, each leader before its companion."""

        def key(row: Request) -> tuple[int, bool]:
            unit = self._unit_of[row.request_id]
            return unit.order, row is unit.companion

        rows = sorted(self.waiting, key=key)
        self.waiting.clear()
        self.waiting.extend(rows)

    def _handle_blocked_waiting_request(self, request: Request) -> bool:
        """Admits the head of the queue whole, or closes the queue for this step."""
        unit = self._unit_of[request.request_id]
        _refresh(unit)
        if not may_admit(unit, self._capacity()):
            self._pause_state = PauseState.PAUSED_NEW
            return False
        admitted: bool = super()._handle_blocked_waiting_request(request)
        return admitted

    def _note_admissions(self, output: SchedulerOutput) -> None:
        for new in output.scheduled_new_reqs:
            unit = self._unit_of[new.req_id]
            if unit.guided and new.req_id == unit.leader.request_id:
                unit.was_admitted = True
                self.ledger.count("admitted")
        for request_id in output.scheduled_cached_reqs.resumed_req_ids:
            unit = self._unit_of[request_id]
            if unit.guided and request_id == unit.leader.request_id:
                self.ledger.count("resumed")
        scheduled = output.num_scheduled_tokens
        for unit in self._stepping_pairs:
            assert unit.companion is not None
            leads = unit.leader.request_id in scheduled
            if leads != (unit.companion.request_id in scheduled):
                self.ledger.count("rows_split")
            elif leads and not unit.joined:
                unit.joined = True
                self.ledger.count("joined")

    # Results

    def update_from_output(
        self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput
    ) -> dict[int, EngineCoreOutputs]:
        """Gives the front end whole rows of requests, and nothing of companions."""
        outputs = self._whole_rows(scheduler_output, model_runner_output)
        if tokens := scheduler_output.total_num_scheduled_tokens:
            self._step_times.add(time.monotonic() - self._step_began, tokens)
        return outputs

    def _whole_rows(
        self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput
    ) -> dict[int, EngineCoreOutputs]:
        self._output = getattr(model_runner_output, "speech", None)
        self._row_of = model_runner_output.req_id_to_index
        if self._output is not None:
            self._finishes = self._output.finish.tolist()
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        if self._output is None:
            return outputs
        self._frames += self._output.frames
        rows = self._output.rows.tolist()
        promoted = False
        for group in outputs.values():
            group.outputs = [o for o in group.outputs if not _is_companion(o.request_id)]
            for output in group.outputs:
                unit = self._unit_of.get(output.request_id)
                if unit is None or not output.new_token_ids:
                    continue
                row = self._row_of[output.request_id]
                output.new_token_ids = rows[row]
                if self._is_unguided(unit, row):
                    self._fail_unguided(unit, output)
                elif output.finish_reason is not None:
                    self._finish(unit, output)
                elif unit.guided and unit.companion is None and self._output.audio_next[row]:
                    self._add_companion(unit)
                    promoted = True
        if promoted:
            self._sort_waiting()
        return outputs

    def _update_request_with_output(
        self, request: Request, new_token_ids: list[int], is_stale: bool = False
    ) -> tuple[list[int], bool]:
        """Stops where the phases say so, not at a token id; a companion goes on without a word."""
        request.append_output_token_ids(new_token_ids)
        finish = self._finishes[self._row_of[request.request_id]]
        if finish == _GOES_ON:
            return [] if _is_companion(request.request_id) else new_token_ids, False
        request.status = _FINISHED[Finish(finish)]
        return new_token_ids, True

    def _is_unguided(self, unit: Unit[Request], row: int) -> bool:
        assert self._output is not None
        if not unit.guided or not self._output.audio[row]:
            return False
        if unit.companion is None:
            return True
        partner = self._row_of.get(unit.companion.request_id)
        return partner is None or not (
            self._output.emitted[partner] and self._output.audio[partner]
        )

    def _finish(
        self, unit: Unit[Request], output: EngineCoreOutput, outcome: str = "finished"
    ) -> None:
        """Ends the companion of a request that ended, and reports its preemptions."""
        if unit.companion is not None:
            super().finish_requests(unit.companion.request_id, RequestStatus.FINISHED_STOPPED)
        self._forget(unit, outcome)
        output.kv_transfer_params = {"preemptions": unit.leader.num_preemptions}

    def _fail_unguided(self, unit: Unit[Request], output: EngineCoreOutput) -> None:
        self.ledger.count("unguided_frames")
        if output.finish_reason is None:
            self.finish_requests(unit.leader.request_id, RequestStatus.FINISHED_ERROR)
        else:
            self._finish(unit, output, "failed")
        output.finish_reason = FinishReason.ERROR

    def speech_stats(self) -> dict[str, Any]:
        """The ledger and what is in use; plain values."""
        live = sum(unit.guided and unit.was_admitted for unit in self._units.values())
        pool = self.kv_cache_manager.block_pool
        return {
            "pairs": self.ledger.to_dict(),
            "pairs_live": live,
            "violations": self.ledger.violations(live),
            "requests": len(self._units),
            "rows_running": len(self.running),
            "rows_waiting": len(self.waiting),
            "rows_capacity": self.max_num_active_reqs,
            "blocks_in_use": pool.num_gpu_blocks - 1 - pool.get_num_free_blocks(),
            "blocks_total": pool.num_gpu_blocks - 1,
            "frames": self._frames,
            "preemptions": self._preemptions,
            "outcomes": dict(self._outcomes),
            **self._step_times.to_dict(),
        }


def _wire(request: Request) -> WireRequest:
    return WireRequest.from_extra_args(request.sampling_params.extra_args)


def _is_companion(request_id: str) -> bool:
    return request_id.endswith(_COMPANION_SUFFIX)


def _refresh(unit: Unit[Request]) -> None:
    companion = unit.companion
    unit.leader_runs = unit.leader.status == _RUNS
    unit.companion_runs = companion is not None and companion.status == _RUNS
