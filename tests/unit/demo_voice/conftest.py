"""What some of these tests need from Debian."""

import os
from pathlib import Path

import pytest

from demo_voice.texts import WORD_LIST, WORDNET


@pytest.fixture(scope="session")
def word_lists() -> None:
    """Skips where the word lists are missing, except on CI, where the test then fails."""
    if not (Path(WORDNET).exists() and Path(WORD_LIST).exists()) and os.environ.get("CI") != "true":
        pytest.skip("wordnet-base or wamerican-small is not installed")
