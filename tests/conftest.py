"""Settings of every test."""

from __future__ import annotations

import os

from hypothesis import settings

# Small tensors: a second thread only waits, and waits long where the machine is busy. The
# processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says nothing on a shared machine.
settings.register_profile("default", deadline=None)
settings.load_profile("default")
