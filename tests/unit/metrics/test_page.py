"""docs/metrics.md says what the definitions say."""

from pathlib import Path

from deployments.metrics.definitions import DEFINITIONS
from deployments.metrics.page import page

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_is_up_to_date() -> None:
    command = ".venv/bin/python -m deployments.metrics.page > docs/metrics.md"
    assert PAGE.read_text() == page(), f"run: {command}"
    assert command in page()


def test_every_metric_has_a_row() -> None:
    for metric in DEFINITIONS:
        assert f"| `{metric.name}`<br>" in page()
