"""docs/settings.md has every setting, and says what it is."""

from pathlib import Path

import pytest
from pydantic import BaseModel

from deployments import settings
from deployments.guards import settings as guard_settings
from deployments.settings_page import descriptions, page
from deployments.strict_settings import StrictSettings

PAGE = Path(__file__).parents[3] / "docs/settings.md"
GROUPS = [
    group
    for module in (settings, guard_settings)
    for group in vars(module).values()
    if isinstance(group, type) and issubclass(group, StrictSettings)
    if group.__module__ == module.__name__
]


def test_the_page_is_what_is_made_of_the_settings() -> None:
    assert PAGE.read_text() == page(), "run: make generated"


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_a_docstring_describes_settings_that_there_are(group: type[BaseModel]) -> None:
    assert set(descriptions(group)) <= set(group.model_fields)


def test_a_setting_has_its_place_bounds_default_and_meaning() -> None:
    assert (
        "| `service.max_voices` | whole number, at least 0 | `100` | Voices that may be stored. |"
        in page()
    )
    assert (
        "| `models.admission.{realtime,standard,batch}.weight` | number, above 0 | `8`, `4`, `1` |"
        in page()
    )
    assert "| `models.id` | text | required |" in page()
