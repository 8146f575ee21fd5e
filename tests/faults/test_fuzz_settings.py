"""Settings, keys and model directories that are almost right: refused in one clear line, never
with a trace, and never in the middle of something."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deployments.config_file import ConfigError, load
from deployments.guards import keys_file
from deployments.guards.key_source import KeySource
from deployments.guards.keys import hash_key
from deployments.guards.settings import GuardSettings
from engine_adapter.checkpoint import CheckpointError, ModelDirectory
from engine_adapter.families import FAMILIES
from engine_adapter.spec import SPEC_FILE, SpecError, StreamSpec
from engine_adapter.tiny import make_tiny
from tests.faults.mutations import TRIES, mutated, rebuilt

SHIPPED = Path(__file__).parents[2] / "serve_config.yaml"
YAML_TOKENS = (
    *(b"&a ", b"*a", b"[", b"]", b"{", b"}", b": ", b"- ", b"\x00", b"\xff", b"---\n", b"%YAML 9"),
    *(b"!!python/object/apply:os.abort []", b"!!int ", b"!!bool ", b"!!timestamp ", b"!!binary "),
    *(b"2026-13-99", b"0x", b"<<: ", b"? ", b"|\n", b'"', b"\t", b"9" * 5_000, b"[" * 2_000),
)
HASH = hash_key("sk-speechlm-of-a-test")
KEYS = f"""\
clients:
  alice:
    keys:
    - hash: {HASH}
      created: '2026-11-30'
    limits:
      requests_per_second: 1.5
      audio_seconds_per_day: null
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "file"


def full_configuration() -> dict[str, Any]:
    """The shipped one with every part that may be there."""
    data: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
    data["logging_config"] = {"log_level": "INFO"}
    [application] = data["applications"]
    application["runtime_env"] = {"env_vars": {"A": "b"}}
    application["deployments"] = [{"name": "Ingress", "ray_actor_options": {"num_cpus": 1}}]
    application["args"] |= {
        "service": {"drain_seconds": 5},
        "guards": {"limits": {"burst": 2, "requests_per_second": 1}, "audit": {"path": "audit"}},
        "tracing": {},
    }
    application["args"]["models"][0]["admission"] = {"max_waiting": 3}
    return data


def check_configuration(file: Path) -> None:
    try:
        load(file)
    except ConfigError as error:
        check_message(file, str(error))


def check_message(file: Path, message: str) -> None:
    assert message.startswith(f"{file}: ")
    assert "\n" not in message


@TRIES
@given(content=mutated(SHIPPED.read_bytes(), YAML_TOKENS))
def test_a_configuration_of_which_bytes_are_wrong(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    check_configuration(file)


@TRIES
@given(data=rebuilt(full_configuration()))
def test_a_configuration_of_which_values_are_wrong(file: Path, data: Any) -> None:
    file.write_text(yaml.safe_dump(data))
    check_configuration(file)


def test_a_configuration_that_contains_itself(file: Path) -> None:
    file.write_text(SHIPPED.read_text() + "    runtime_env: &itself\n      env_vars: *itself\n")
    with pytest.raises(ConfigError) as caught:
        load(file)
    check_message(file, str(caught.value))


@TRIES
@given(content=mutated(KEYS.encode(), YAML_TOKENS))
def test_keys_of_which_bytes_are_wrong(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    try:
        keys_file.load(file)
    except keys_file.KeysFileError as error:
        check_message(file, str(error))


@pytest.mark.parametrize("value", ["2026-13-99", "!!bool perhaps", "!!timestamp noon", "9" * 5_000])
def test_a_wrong_value_does_not_end_the_watch_over_the_keys(file: Path, value: str) -> None:
    """Or a key that is revoked after somebody's mistake would stay in force."""
    file.write_text(KEYS)
    source = KeySource(GuardSettings(keys_file=str(file)), {})
    file.write_text(KEYS.replace("'2026-11-30'", value))
    source.refresh()
    assert source.problem is not None
    assert source.find("sk-speechlm-of-a-test") is not None
    file.write_text("clients: {}")
    source.refresh()
    assert source.find("sk-speechlm-of-a-test") is None


SPEC = json.dumps(FAMILIES["demo"].to_dict(), indent=1)
SPEC_TOKENS = (b"null", b"[]", b"{}", b"-1", b"1e999", b"NaN", b"9" * 5_000, b"[" * 100_000, b'"')


def check_spec(directory: Path) -> None:
    with suppress(SpecError):  # any other error fails the test
        StreamSpec.load(directory)


@TRIES
@given(content=mutated(SPEC.encode(), SPEC_TOKENS))
def test_a_family_of_which_bytes_are_wrong(file: Path, content: bytes) -> None:
    (file.parent / SPEC_FILE).write_bytes(content)
    check_spec(file.parent)


@TRIES
@given(family=st.sampled_from(sorted(FAMILIES)), data=st.data())
def test_a_family_of_which_values_are_wrong(file: Path, family: str, data: st.DataObject) -> None:
    plain = json.loads(json.dumps(FAMILIES[family].to_dict()))
    (file.parent / SPEC_FILE).write_text(json.dumps(data.draw(rebuilt(plain))))
    check_spec(file.parent)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny("demo", tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@TRIES
@given(data=st.data())
def test_a_model_directory_of_which_bytes_are_wrong(
    model: Path, name: str, data: st.DataObject
) -> None:
    path = model / name
    good = path.read_bytes()
    head = min(len(good), 4_000)  # of the weights, their names and places
    path.write_bytes(data.draw(mutated(good[:head], SPEC_TOKENS)) + good[head:])
    try:
        with suppress(CheckpointError):
            for _ in ModelDirectory.open(model).tensors():
                pass
    finally:
        path.write_bytes(good)
