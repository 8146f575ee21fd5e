"""Files that cannot be used are refused before anything starts, by the name of their setting."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from deployments.commands.serve import _check_guards
from deployments.config_file import load
from deployments.guards.runtime import Guards
from deployments.guards.settings import GuardSettings
from deployments.guards.usage import Usage
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import InProcess

SHIPPED = Path(__file__).parents[3] / "serve_config.yaml"
UNWRITABLE = "/proc"  # to root, too


def start(directory: Path, section: str, settings: dict[str, Any]) -> None:
    """Checks the shipped configuration with other settings."""
    config = yaml.safe_load(SHIPPED.read_text())
    config["applications"][0]["args"][section] = settings
    file = directory / "serve_config.yaml"
    file.write_text(yaml.safe_dump(config))
    _check_guards(load(file))


@pytest.mark.parametrize("folder", ["missing", UNWRITABLE, "a-file"])
@pytest.mark.parametrize(
    ("setting", "settings"),
    [
        ("guards.audit.path", {"audit": {"path": "FOLDER/audit.jsonl"}}),
        (
            "guards.usage_file",
            {"usage_file": "FOLDER/usage.sqlite", "limits": {"websockets": 1}},
        ),
        ("guards.usage_file", {"usage_file": "FOLDER/usage.sqlite"}),
        ("guards.keys_file", {"keys_file": "FOLDER/keys.yaml"}),
    ],
)
def test_a_file_in_a_place_where_none_can_be(
    tmp_path: Path, folder: str, setting: str, settings: dict[str, Any]
) -> None:
    (tmp_path / "a-file").write_text("")
    place = str(tmp_path / folder)  # an absolute folder replaces the first
    filled = yaml.safe_load(yaml.safe_dump(settings).replace("FOLDER", place))
    with pytest.raises(ValueError, match=f"^{setting}: ") as caught:
        start(tmp_path, "guards", filled)
    assert place in str(caught.value)


def test_a_keys_file_with_a_mistake_is_named_with_its_setting(tmp_path: Path) -> None:
    keys = tmp_path / "keys.yaml"
    keys.write_text("clients: {alice: {keyz: []}}")
    with pytest.raises(ValueError, match=rf"^guards\.keys_file: {keys}: clients\.alice\.keyz: "):
        start(tmp_path, "guards", {"keys_file": str(keys)})


@pytest.mark.parametrize("store", ["/proc/store.sqlite3", "/proc/new/store.sqlite3"])
def test_a_store_that_cannot_be_made(tmp_path: Path, store: str) -> None:
    with pytest.raises(ValueError, match=r"^service\.store: cannot write in /proc: "):
        start(tmp_path, "service", {"store": store})


def test_what_is_checked_is_not_left_behind(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    audit = {"audit": {"path": str(tmp_path / "log" / "audit.jsonl")}}
    start(tmp_path, "guards", audit)
    start(tmp_path, "service", {"store": str(tmp_path / "log" / "new" / "store.sqlite3")})
    assert list((tmp_path / "log").iterdir()) == []


def test_a_front_end_that_serve_starts_names_the_setting_too(tmp_path: Path) -> None:
    settings = GuardSettings.model_validate({"audit": {"path": str(tmp_path / "no" / "a.jsonl")}})
    with pytest.raises(ValueError, match=r"^guards\.audit\.path: "):
        Guards.begin(settings, ServiceSettings(), InProcess(), {})


def test_who_was_given_how_much_is_for_the_owner_alone(tmp_path: Path) -> None:
    usage = tmp_path / "usage.sqlite"
    start(tmp_path, "guards", {"usage_file": str(usage), "limits": {"websockets": 1}})
    opened = Usage(usage)
    opened.charge([("lease", "alice", 1.0)], 1, 1.0)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("usage.sqlite*")} == {0o600}
    opened.close()
