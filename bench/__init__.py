"""Benchmarks against stock vLLM and plain PyTorch. What the figures mean: docs/benchmarks.md."""
