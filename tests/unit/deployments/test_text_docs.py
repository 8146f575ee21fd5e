"""The examples of docs/text.md are true."""

import re
from pathlib import Path

import pytest

from deployments.text.english import normalize

PAGE = Path(__file__).parents[3] / "docs" / "text.md"
EXAMPLES = re.findall(r"^\| `(.+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 30


@pytest.mark.parametrize(("written", "spoken"), EXAMPLES)
def test_an_example_is_true(written: str, spoken: str) -> None:
    assert normalize(written) == spoken
