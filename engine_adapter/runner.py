"""The model runner: one mixin over vLLM's CPU and GPU runners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from vllm.distributed import get_tp_group
from vllm.v1.outputs import ModelRunnerOutput, SamplerOutput

from engine_adapter.step import SpeechStep, StepOutput, rehearse
from engine_adapter.wire import WireRequest

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner as _Base
else:
    _Base = object


class SpeechRunnerMixin(_Base):
    """Feeds auxiliary ids to the model and samples rows instead of tokens."""

    def load_model(self, *args: Any, **kwargs: Any) -> None:
        """Loads the model and makes the state of its requests."""
        super().load_model(*args, **kwargs)
        model = self.get_model()
        agree = first_worker_decides if get_tp_group().world_size > 1 else None
        self.speech = SpeechStep(model.spec, self.max_num_reqs, self.max_model_len, agree)
        self.speech_stats: dict[str, Any] = {}
        self._step_output: StepOutput | None = None

    def _update_states(self, scheduler_output: SchedulerOutput) -> Any:
        corrections = super()._update_states(scheduler_output)
        for new in scheduler_output.scheduled_new_reqs:
            wire = WireRequest.from_extra_args(new.sampling_params.extra_args)
            self.speech.add(new.req_id, len(new.prompt_token_ids), wire)
        self.speech_stats = scheduler_output.speech_stats
        return corrections

    def _on_request_state_removed(self, req_id: str, req_state: Any) -> None:
        super()._on_request_state_removed(req_id, req_state)
        self.speech.remove(req_id)

    def _model_forward(self, input_ids: Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        assert input_ids is not None
        batch, rows = self.input_batch, self.input_batch.num_reqs
        place = (
            batch.req_ids,
            batch.num_computed_tokens_cpu[:rows],
            self.query_start_loc.np[: rows + 1],
        )
        self.get_model().input_rows.put(
            self.speech.auxiliary_ids(*place), len(input_ids), self.speech.embedded_rows(*place)
        )
        return super()._model_forward(input_ids, *args, **kwargs)

    def _sample(self, logits: Tensor, spec_decode_metadata: Any) -> SamplerOutput:
        """Samples rows; ``logits`` are hidden states (``SpeechLM.compute_logits``)."""
        discard = self.discard_request_mask.np[: self.input_batch.num_reqs]
        output = self.speech.sample(self.input_batch.req_ids, discard, logits, self.get_model())
        # A held row gives no token, as if its prefill were unfinished.
        discard |= ~output.emitted
        self._step_output = output
        primary = torch.from_numpy(output.rows[:, :1].copy())
        return SamplerOutput(sampled_token_ids=primary, logprobs_tensors=None)

    def sample_tokens(self, grammar_output: Any) -> ModelRunnerOutput:
        """Attaches the step's rows to what the scheduler gets."""
        output = super().sample_tokens(grammar_output)
        output.speech, self._step_output = self._step_output, None
        return output

    def _dummy_sampler_run(self, hidden_states: Tensor) -> Tensor:
        """Runs the heads, and draws, as widely as a step can, for vLLM's memory profile."""
        model = self.get_model()
        rehearse(model.spec, hidden_states, model)
        return hidden_states


def first_worker_decides(ids: NDArray[np.int32]) -> None:
    """Overwrites what the workers of a tensor parallel group have sampled by what the first one
    has.

    All of them sample with the same noise. Yet where more than two sum a layer's parts, each in
    an order of its own, their hidden states may differ in the last bit, and so may an id, after
    which they would never agree again.
    """
    group = get_tp_group()
    torch.distributed.broadcast(torch.from_numpy(ids), group.ranks[0], group=group.cpu_group)
