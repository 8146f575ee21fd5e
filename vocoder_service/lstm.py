"""The LSTM inside a decoder, read piece by piece."""

from collections.abc import Sequence

import torch
from torch import nn

from vocoder_service.receptive_field import ConvLayer
from vocoder_service.streaming import State


class ResidualLstm:
    """An LSTM whose input is added to its output. A state is [batch, 2, layers, width]."""

    convolutions: Sequence[ConvLayer] = ()

    def __init__(self, lstm: nn.LSTM) -> None:
        """
        Args:
            lstm: as many outputs as inputs, time in front of the batch.
        """
        self._lstm = lstm

    def advance(
        self, signal: torch.Tensor, before: State | None, last: bool
    ) -> tuple[torch.Tensor, State]:
        """See ``Layer.advance``."""
        lstm = self._lstm
        if before is None:
            before = signal.new_zeros(len(signal), 2, lstm.num_layers, lstm.hidden_size)
        assert isinstance(before, torch.Tensor)
        if signal.shape[1] == 0:
            return signal, before
        hidden, cell = before.permute(1, 2, 0, 3).contiguous()
        made, after = lstm(signal.transpose(0, 1), (hidden, cell))
        return made.transpose(0, 1) + signal, torch.stack(after).permute(2, 0, 1, 3)
