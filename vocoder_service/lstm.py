"""The LSTM inside a decoder, read piece by piece."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from vocoder_service.stages import Run


class ResidualLstm(nn.Module):
    """An LSTM whose input is added to its output. A state is [2, layers, width]."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, width, layers)

    def advance(self, runs: Sequence[Run]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """See ``SequenceModel``."""
        states = [self._before(run) for run in runs]
        results = [(run.inputs, state) for run, state in zip(runs, states, strict=True)]
        reading = [index for index, run in enumerate(runs) if len(run.inputs)]
        if not reading:
            return results
        inputs = [runs[index].inputs for index in reading]
        hidden, cell = torch.stack([states[index] for index in reading], dim=2)
        packed, after = self.lstm(pack_sequence(inputs, enforce_sorted=False), (hidden, cell))
        for row, (index, outputs) in enumerate(zip(reading, unpack_sequence(packed), strict=True)):
            state = torch.stack([part[:, row] for part in after])
            results[index] = (outputs + runs[index].inputs, state)
        return results

    def _before(self, run: Run) -> torch.Tensor:
        if run.state is not None:
            return run.state
        return run.inputs.new_zeros(2, self.lstm.num_layers, self.lstm.hidden_size)
