"""Settings of every test here."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing on a shared machine.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
