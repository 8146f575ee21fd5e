"""What Serve's proxy lets through of a request's headers."""

import pytest
from ray.serve._private.utils import call_function_from_import_path
from starlette.middleware import Middleware

from deployments.front_end.proxy import CALLBACK, UsableHeaders, usable


@pytest.mark.parametrize("value", [b"a", b"Mine-1.2:3_4", b"x" * 128])
def test_a_sane_request_id_goes_on(value: bytes) -> None:
    headers = [(b"x-request-id", value), (b"accept", b"*/*")]
    assert usable(headers) == headers


@pytest.mark.parametrize("value", [b"", b" ", b"a\n", b"\xff\xfe", "é".encode(), b"x" * 129])
def test_any_other_is_taken_away_so_that_serve_gives_a_new_one(value: bytes) -> None:
    assert usable([(b"x-request-id", value), (b"accept", b"*/*")]) == [(b"accept", b"*/*")]


def test_of_two_request_ids_none_is_taken() -> None:
    assert usable([(b"x-request-id", b"a"), (b"x-request-id", b"b")]) == []


@pytest.mark.parametrize(
    "name",
    [b"serve_multiplexed_model_id", b"serve-multiplexed-model-id", b"x-session-id", b"\xff"],
)
def test_what_steers_serve_or_makes_it_fail_is_taken_away(name: bytes) -> None:
    assert usable([(name, b"\xff"), (b"accept", b"\xff")]) == [(b"accept", b"\xff")]


def test_serve_finds_it_by_its_name() -> None:
    [middleware] = call_function_from_import_path(CALLBACK)
    assert isinstance(middleware, Middleware)
    assert middleware.cls is UsableHeaders
