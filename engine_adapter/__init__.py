"""The extension of vLLM that makes it serve speech language models, from outside."""
