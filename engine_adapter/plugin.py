"""Entry point ``vllm.general_plugins``: vLLM loads it in every process it starts."""

from __future__ import annotations


def register() -> None:
    """Registers the model class; imports nothing heavy."""
    from vllm import ModelRegistry

    ModelRegistry.register_model("SpeechLM", "engine_adapter.model:SpeechLM")
