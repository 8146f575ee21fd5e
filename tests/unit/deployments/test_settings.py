"""Settings are strict, and the shipped configuration is one that Serve understands."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from deployments import yaml_file
from deployments.config_file import ConfigError, load, speech_settings
from deployments.settings import ServiceSettings, Settings

SHIPPED = Path(__file__).parents[3] / "serve_config.yaml"


def shipped() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
    return data


def model(**changes: Any) -> dict[str, Any]:
    return {"id": "a", "path": "tiny:demo", **changes}


@pytest.mark.parametrize(
    ("args", "where"),
    [
        ({"models": []}, "models"),
        ({"models": [model()], "extra": 1}, "extra"),
        ({"models": [model(colour="red")]}, "models.0.colour"),
        ({"models": [model(engine={"dtpye": "float32"})]}, "models.0.engine.dtpye"),
        ({"models": [model(engine={"dtype": "float8"})]}, "models.0.engine.dtype"),
        ({"models": [model(engine={"max_rows": "64"})]}, "models.0.engine.max_rows"),
        ({"models": [model(engine={"cpus": float("nan")})]}, "models.0.engine.cpus"),
        ({"models": [model(engine={"max_model_len": 1})]}, "models.0.engine.max_model_len"),
        ({"models": [model(replicas=4, autoscaling={"max_replicas": 8})]}, "models.0"),
        ({"models": [model()], "guards": {"limits": {"burst": 3}}}, "guards"),
        *(
            ({"models": [model()], "guards": {"cors_origins": [origin]}}, "guards.cors_origins.0")
            for origin in ("", "example.org", "https://example.org/", "https://Example.org")
        ),
        ({"models": [model(voices=[])]}, "models.0.voices"),
        ({"models": [model(id="../a b")]}, "models.0.id"),
        ({"models": [model(vocoder={"first_window": 9, "max_window": 8})]}, "models.0.vocoder"),
        ({"models": [model(), model()]}, ""),
        ({"models": [model()], "service": {"drain_seconds": 0}}, "service.drain_seconds"),
    ],
)
def test_a_mistake_is_refused_where_it_is(args: dict[str, Any], where: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(args)
    assert ".".join(map(str, caught.value.errors()[0]["loc"])) == where


def test_engine_and_vocoder_share_one_bundle() -> None:
    settings = Settings.model_validate(
        {"models": [model(engine={"cpus": 1.5, "gpus": 0.75}, vocoder={"gpus": 0.25})]}
    )
    assert settings.models[0].bundle == {"CPU": 1.5, "GPU": 1.0}


@pytest.mark.parametrize(
    ("service", "warned"),
    [
        ({}, False),
        ({"drain_seconds": 60}, True),
        ({"drain_seconds": 60, "max_duration_seconds": 120}, False),
        ({"max_duration_seconds": 3600}, True),
    ],
)
def test_a_stop_that_would_cut_the_longest_answers_is_told(
    service: dict[str, Any], warned: bool
) -> None:
    warning = ServiceSettings.model_validate(service).drain_warning
    assert (warning is not None) == warned
    if warning is not None:
        assert warning.startswith("service.drain_seconds: ")


def test_the_shipped_configuration_is_valid() -> None:
    config = load(SHIPPED)
    [(application, settings)] = speech_settings(config)
    assert application.route_prefix == "/"
    assert [m.id for m in settings.models] == ["demo-voice"]
    assert (config.http_options.host, config.http_options.port) == ("127.0.0.1", 8000)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ((), "proxy_locations"),
        (("http_options",), "prot"),
        (("applications", 0), "route_prefx"),
        (("applications", 0, "args"), "modles"),
        (("applications", 0, "args", "models", 0), "voice"),
        (("applications", 0, "args", "models", 0, "engine"), "max_row"),
    ],
)
def test_an_unknown_key_is_named_at_every_level(
    tmp_path: Path, path: tuple[str | int, ...], key: str
) -> None:
    data = shipped()
    at: Any = data
    for part in path:
        at = at[part]
    at[key] = 1
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError, match=key):
        load(file)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"import_path": "deployments.builder:bild"}, "applications.0.import_path: must be "),
        ({"import_path": "deployment.builder:build"}, "applications.0.import_path: must be "),
        ({"import_path": "builder"}, "applications.0.import_path: "),
        ({"route_prefix": "/speech"}, "applications.0.route_prefix: must be /"),
        ({"route_prefix": None}, "applications.0.route_prefix: must be /"),
        ({"args": []}, "applications.0.args: "),
        ({"deployments": [{"name": "engine"}]}, "applications.0.deployments.0.name: 'engine'"),
        ({"deployments": [{"name": "Ingress", "replicas": 2}]}, "deployments.0.replicas"),
    ],
)
def test_what_serve_would_fail_with_later_is_said_at_once(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    data = shipped()
    data["applications"][0] |= changes
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_of_a_model_that_is_none_is_said_in_words(tmp_path: Path) -> None:
    data = shipped()
    data["applications"][0]["args"]["models"][0]["id"] = "a b"
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(data))
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value).endswith(
        "models.0.id: must be made of letters, digits and . _ -, in parts with / between"
    )


@pytest.mark.parametrize(
    ("changes", "key"),
    [({"applications": []}, "applications"), ({"proxy_location": "Disabled"}, "proxy_location")],
)
def test_a_service_that_nobody_could_reach_is_refused(
    tmp_path: Path, changes: dict[str, Any], key: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(shipped() | changes))
    with pytest.raises(ConfigError, match=rf"config\.yaml: {key}: "):
        load(file)


def test_deployments_can_be_set_by_their_names(tmp_path: Path) -> None:
    data = shipped()
    data["applications"][0]["deployments"] = [
        {"name": "Ingress", "num_replicas": 2},
        {"name": "engine-demo-voice", "num_replicas": 2},
    ]
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(data))
    assert len(load(file).applications[0].deployments) == 2


@pytest.mark.parametrize("content", ["{", "", "[]", "- 1", "applications: 3"])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        load(file)


def test_a_key_that_stands_twice_is_refused_and_not_the_last_one_taken(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    guards = "      guards: {keys_file: keys.yaml}\n"
    file.write_text(f"{SHIPPED.read_text().rstrip()}\n{guards}{guards}")
    with pytest.raises(ConfigError, match=r"the same key twice in one place \(line \d+\): guards"):
        load(file)


def test_a_part_that_is_merged_into_another_is_no_key_twice(tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text("x: {y: &a {<<: &b {k: 1}, k: 2}}\nz: {<<: *a, k: 3}")
    assert yaml_file.read(file) == {"x": {"y": {"k": 2}}, "z": {"k": 3}}


@pytest.mark.parametrize("content", ["", "[]", "text"])
def test_a_file_without_keys_is_told_which_it_needs(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match="must be a mapping with the key applications"):
        load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load(tmp_path / "nowhere.yaml")
