"""The model and the configuration of the tests of the service."""

from tests.serve.conftest import capacity, endless_model, serve_config

__all__ = ["capacity", "endless_model", "serve_config"]
