"""Settings of every test here."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

# How long an example takes says nothing on a shared machine.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Small tensors gain nothing from threads, and other tests may be running."""
    torch.set_num_threads(1)
