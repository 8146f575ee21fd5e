"""Guidance as an atomic pair of rows: policy, ledger and the scheduler that applies them."""
