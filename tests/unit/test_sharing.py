"""Which tests share a process."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.sharing import group

SERVE = Path(__file__).parents[1] / "serve"


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/engine/test_exactness.py::test_one_at_a_time[opuslm]", "opuslm"),
        ("tests/engine/test_refusals.py::test_bad_values[opuslm-dialogue]", "opuslm-dialogue"),
        ("tests/engine/test_exactness.py::test_aborts[opuslm-dialogue-roomy]", "opuslm-dialogue"),
        ("tests/engine/test_exactness.py::test_many[8 rows-bagpiper]", "bagpiper"),
        ("tests/engine/test_demo_voice.py::test_it", "tests/engine/test_demo_voice.py"),
        ("tests/serve/test_http.py::test_it[a]", "the service"),
        ("tests/serve/test_guards.py::test_it[demo]", "tests/serve/test_guards.py"),
        ("tests/serve/conversing/test_official.py::test_it", "tests/serve/conversing"),
    ],
)
def test_the_group_of_a_test(nodeid: str, expected: str) -> None:
    assert group(nodeid) == expected


def test_modules_with_a_service_of_their_own_are_groups_of_their_own() -> None:
    for file in SERVE.glob("test_*.py"):
        functions = {
            node.name: node
            for node in ast.parse(file.read_text()).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        tests = (f for f in functions.values() if f.name.startswith("test_") or f.decorator_list)
        arguments = {a.arg for f in tests for a in f.args.args}
        shares = "service" in arguments and "service" not in functions
        name = f"tests/serve/{file.name}"
        assert (group(f"{name}::test_it") == "the service") == shares, file.name
