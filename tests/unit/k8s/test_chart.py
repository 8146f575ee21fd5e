"""What the chart makes of its profiles: objects that Kubernetes, KubeRay and Serve accept."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import helm_python as helm
import jsonschema
import kubernetes_validate
import pytest
import yaml

from deployments import config_file
from deployments.settings import Settings
from tests.unit.k8s.chart import CHART, PROFILES, ROOT, Values, of_kind, pods, profile, render
from tests.unit.k8s.crd import schema_of

KUBERNETES = "1.37"
CRDS = ROOT.parent / "shared/kuberay-crds"
OPERATOR = yaml.safe_load(Path(__file__).with_name("prometheus_operator.yaml").read_text())
CORE = {
    "ConfigMap",
    "Ingress",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
}


def everything_on() -> Values:
    """All options that a profile leaves off."""
    return profile("gpu") | {
        "image": {
            "repository": "registry.example.org/speechlm",
            "digest": "sha256:" + "0" * 64,
            "pullSecrets": [{"name": "registry"}],
        },
        "modelVolume": {
            "type": "copy",
            "copy": {
                "image": "registry.example.org/copy:1",
                "command": ["sh", "-c", "cp -r /from/. /models"],
                "env": [{"name": "FROM", "value": "bucket"}],
                "envFrom": [{"secretRef": {"name": "bucket"}}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            },
        },
        "env": [{"name": "TZ", "value": "UTC"}],
        "envFrom": [{"secretRef": {"name": "extra"}}],
        "sidecars": [
            {
                "name": "logs",
                "image": "registry.example.org/collector:1",
                "volumeMounts": [
                    {"name": "scratch", "mountPath": "/tmp", "readOnly": True},
                    {"name": "collector", "mountPath": "/etc/collector"},
                ],
            }
        ],
        "extraVolumes": [{"name": "collector", "configMap": {"name": "collector"}}],
        "priorityClassName": "high",
        "runtimeClassName": "nvidia",
        "tokenAuth": {"existingSecret": "ray-token"},
        "upgrade": {
            "type": "NewClusterWithIncrementalUpgrade",
            "incremental": {"gatewayClassName": "istio"},
        },
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "host": "speech.example.org",
            "tlsSecret": "speech-tls",
            "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
        },
        "networkPolicy": {"egress": [{"ports": [{"protocol": "TCP", "port": 4318}]}]},
        "data": {"storageClassName": "fast"},
        "frontEnds": {
            "replicas": 2,
            "affinity": {"nodeAffinity": {}},
            "annotations": {"example.org/team": "speech"},
        },
        "extraObjects": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "{{ .Release.Name }}-extra"},
                "data": {"a": "b"},
            }
        ],
    }


VALUES = {name: (lambda name=name: profile(name)) for name in PROFILES} | {"all": everything_on}
every_values = pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)


@every_values
def test_helm_finds_no_fault(make: Any) -> None:
    found = helm.lint(CHART, make(), strict=True)
    assert found["errors"] == []
    assert {message["error"] for message in found["messages"]} <= {"icon is recommended"}


@every_values
def test_kubernetes_knows_every_field_of_its_own_objects(make: Any) -> None:
    objects = [each for each in render(make()) if each["kind"] in CORE]
    assert {"ConfigMap", "NetworkPolicy", "PodDisruptionBudget"} <= {o["kind"] for o in objects}
    for each in objects:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


@every_values
def test_kubernetes_knows_every_field_of_the_pods(make: Any) -> None:
    """KubeRay's definition has them too, but without the values that Kubernetes checks."""
    for role, spec in pods(make()).items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role}, "spec": spec}
        kubernetes_validate.validate(pod, KUBERNETES, strict=True)


def test_kubernetes_knows_every_field_of_the_documented_collector_of_logs() -> None:
    text = (ROOT / "docs/deploy.md").read_text()
    (block,) = re.findall(r"```yaml\n(sidecars:.*?)```", text, re.DOTALL)
    spec = pods(profile("cpu") | yaml.safe_load(block))["engine"]
    assert spec["initContainers"][0]["name"] == "logs"
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "engine"}, "spec": spec}
    kubernetes_validate.validate(pod, KUBERNETES, strict=True)


@cache
def _kuberay() -> jsonschema.Draft202012Validator:
    if not CRDS.is_dir():
        pytest.skip("KubeRay's definitions are not part of the project")
    return jsonschema.Draft202012Validator(schema_of(CRDS / "ray.io_rayservices.yaml"))


@every_values
def test_kuberay_knows_every_field_of_the_ray_service(make: Any) -> None:
    (service,) = of_kind(render(make()), "RayService")
    _kuberay().validate(service)


def test_kuberay_would_not_know_another_field() -> None:
    (service,) = of_kind(render(profile("cpu")), "RayService")
    pod = service["spec"]["rayClusterConfig"]["headGroupSpec"]["template"]["spec"]
    pod["containers"][0]["imagePullPolice"] = "Always"
    with pytest.raises(jsonschema.ValidationError, match="imagePullPolice"):
        _kuberay().validate(service)


@every_values
@pytest.mark.parametrize("kind", OPERATOR)
def test_the_prometheus_operator_knows_every_field(make: Any, kind: str) -> None:
    objects = of_kind(render(make()), kind)
    assert objects
    for each in objects:
        assert each["apiVersion"] == "monitoring.coreos.com/v1"
        jsonschema.validate(each["spec"], OPERATOR[kind])


@every_values
def test_serve_and_the_settings_know_every_key_of_serve_config(make: Any, tmp_path: Path) -> None:
    (service,) = of_kind(render(make()), "RayService")
    file = tmp_path / "serve_config.yaml"
    file.write_text(service["spec"]["serveConfigV2"])
    config = config_file.load(file)
    ((application, settings),) = config_file.speech_settings(config)
    assert (config.http_options.host, config.http_options.port) == ("0.0.0.0", 8000)
    assert application.name == "speechlm"
    assert application.args.keys() == Settings.model_fields.keys()
    # An override would make Serve build the options anew, out of plain data.
    assert application.deployments == []
    assert settings.guards.keys_file == "/etc/speechlm/keys/keys.yaml"
    assert settings.guards.usage_file == "/data/usage.sqlite3"
    assert settings.service.store == "/data/store.sqlite3"


def everything_set() -> dict[str, Any]:
    """The application's settings with a value for each of them, where the chart leaves it open."""
    model = {
        "id": "family/large",
        "path": "/models/large",
        "voices": ["rms"],
        "normalizer": "english",
        "autoscaling": {"min_replicas": 0, "max_replicas": 5, "idle_seconds": 60.5},
        "max_concurrent_requests": 1_000_000,
        "admission": {
            "realtime": {"weight": 0.5, "max_wait_seconds": 1.25},
            "standard": {"weight": 3.0, "max_wait_seconds": 100_000_000.0},
            "batch": {"weight": 1.0, "max_wait_seconds": 0.0},
            "max_waiting": 0,
        },
        "surge_percent": 100,
        "engine": {
            "dtype": "float32",
            "max_rows": 2,
            "kv_blocks": 123_456_789,
            "gpu_memory_utilization": 0.8,
            "gpus": 0.5,
        },
        "vocoder": {"gpus": 0.5, "gpu_memory_utilization": 0.1},
    }
    gpus = {name: model[name] for name in ("engine", "vocoder")}
    other = {"id": "other", "path": "/models/other", "replicas": 3, **gpus}
    service = {"max_upload_bytes": 26_214_400, "max_answers": 10_000_000, "drain_seconds": 90.5}
    guards = {
        "open": True,
        "limits": {
            "requests_per_second": 0.1,
            "burst": 1,
            "concurrent_requests": 2,
            "websockets": 3,
            "audio_seconds_per_day": 1e9,
            "priority": "batch",
        },
        "usage_file": "/data/elsewhere.sqlite3",
        "audit": {"path": "/data/audit.jsonl", "max_bytes": 104_857_600, "audio": True},
        "log_format": "text",
        "cors_origins": ["https://example.org"],
    }
    tracing = {"endpoint": "http://collector:4318/v1/traces", "share": 0.01}
    settings = Settings.model_validate(
        {"models": [model, other], "service": service, "guards": guards, "tracing": tracing}
    )
    whole = settings.model_dump(mode="json")
    for name in ("ingress_replicas", "front_end_resource", "store"):
        del whole["service"][name]
    del whole["guards"]["keys_file"]
    return whole


def test_every_setting_of_the_service_can_be_given_and_arrives_as_it_is() -> None:
    """Numbers too, which templates like to write as floating-point."""
    given = everything_set()
    (service,) = of_kind(render(profile("gpu") | given), "RayService")
    (application,) = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    arrived = Settings.model_validate(application["args"]).model_dump(mode="json")
    for part, settings in given.items():
        if isinstance(settings, dict):
            assert {name: arrived[part][name] for name in settings} == settings
    assert arrived["models"] == given["models"]


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("kind", ["PodMonitor", "PrometheusRule"])
def test_kube_prometheus_stack_finds_what_a_profile_brings(name: str, kind: str) -> None:
    """By its defaults it selects what has the label ``release`` with the name of its release."""
    objects = of_kind(render(profile(name)), kind)
    assert objects
    for each in objects:
        assert each["metadata"]["labels"]["release"] == "kube-prometheus-stack"


@pytest.mark.parametrize("kind", ["PodMonitor", "PrometheusRule"])
def test_nothing_of_the_prometheus_operator_without_monitoring(kind: str) -> None:
    assert of_kind(render(profile("cpu") | {"monitoring": {"enabled": False}}), kind) == []


def test_extra_objects_are_templates() -> None:
    names = [each["metadata"]["name"] for each in of_kind(render(everything_on()), "ConfigMap")]
    assert "tts-extra" in names


def model(**parts: Any) -> dict[str, Any]:
    """One whose replicas take what is said."""
    return {"id": "big", "path": "/models/big", **parts}


def group(**parts: Any) -> dict[str, Any]:
    """Engine pods of 4 CPUs."""
    sizes = {"replicas": 1, "minReplicas": 1, "maxReplicas": 1}
    resources = {"limits": {"cpu": "4", "memory": "16Gi"}}
    return {"name": "engines", **sizes, "resources": resources, **parts}


def incremental(**options: Any) -> Values:
    """Upgrades in steps, on autoscaled pods."""
    upgrade = {"type": "NewClusterWithIncrementalUpgrade", "incremental": options}
    return {"upgrade": upgrade, "autoscaling": {"enabled": True}}


INCREMENTAL = {"upgrade": incremental()["upgrade"]}


def test_a_replica_takes_by_default_what_the_settings_say() -> None:
    takes = Settings.model_validate({"models": [model()]}).models[0].bundle["CPU"]
    none = group(resources={"limits": {"cpu": "0"}})
    with pytest.raises(helm.HelmError, match=f"big takes {takes:g} cpus and 0 gpus"):
        render(profile("cpu") | {"models": [model()], "engineGroups": [none]})


@pytest.mark.parametrize(
    "resources",
    [
        {"limits": {"cpu": "4"}},
        {"limits": {"cpu": 4}},
        {"limits": {"cpu": "3500m"}},  # KubeRay rounds up
        {"requests": {"cpu": "4"}},
        {"limits": {"cpu": "16", "nvidia.com/gpu": 1}},
    ],
    ids=str,
)
def test_a_replica_that_fills_its_pod_fits(resources: dict[str, Any]) -> None:
    values = {"models": [model(engine={"cpus": 3}, vocoder={"cpus": 1})]}
    groups = [group(name="small", resources={"limits": {"cpu": "1"}}), group(resources=resources)]
    assert of_kind(render(profile("cpu") | values | {"engineGroups": groups}), "RayService")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"modles": []}, "modles"),
        ({"models": []}, "models"),
        ({"models": [{"id": "a", "path": "/a", "engin": {}}]}, "engin"),
        ({"models": [{"id": "a", "path": "/a", "engine": {"max_rows": 0}}]}, "max_rows"),
        ({"guards": {"limits": {"per_day": 1}}}, "per_day"),
        ({"image": {}}, "image.repository"),
        ({"apiKeys": {"existingSecret": ""}}, "apiKeys.existingSecret"),
        ({"service": {"store": "/elsewhere"}}, "service.store"),
        ({"service": {"ingress_replicas": 3}}, "service.ingress_replicas"),
        ({"data": {"enabled": False}, "frontEnds": {"replicas": 2}}, "service.max_voices"),
        ({"data": {"enabled": False}, "guards": {"usage_file": "/tmp/u"}}, "guards.usage_file"),
        ({"guards": {"usage_file": "/tmp/usage.sqlite3"}}, "guards.usage_file"),
        ({"guards": {"keys_file": "/data/keys.yaml"}}, "guards.keys_file: the chart sets it"),
        ({"guards": {"audit": {"path": "/var/log/audit.jsonl"}}}, "guards.audit.path: front ends"),
        (
            {"data": {"enabled": False}, "guards": {"audit": {"path": "/data/audit.jsonl"}}},
            "guards.audit.path: front ends",
        ),
        ({"modelVolume": {"type": "persistentVolumeClaim"}}, "modelVolume.claimName"),
        ({"modelVolume": {"type": "floppy"}}, "modelVolume"),
        ({"gcsFaultTolerance": {"enabled": True}}, "gcsFaultTolerance.redisAddress"),
        ({"upgrade": {"type": "Hope"}}, "upgrade"),
        (INCREMENTAL, "autoscaling.enabled"),
        (INCREMENTAL | {"autoscaling": {"enabled": True}}, "upgrade.incremental.gatewayClassName"),
        (incremental(gatewayClassName="istio", stepSizePercent=200), "stepSizePercent"),
        (
            incremental(gatewayClassName="istio", stepSizePercent=50, maxSurgePercent=20),
            "stepSizePercent: at most maxSurgePercent",
        ),
        ({"engineGroups": [group(minReplicas=5, maxReplicas=2)]}, "engineGroups: engines needs"),
        ({"engineGroups": [group(replicas=3, maxReplicas=2)]}, "engineGroups: engines needs"),
        ({"engineGroups": [group(name="front-ends")]}, "engineGroups: the name front-ends"),
        ({"engineGroups": [group(), group()]}, "engineGroups: the name engines"),
        ({"models": [model(engine={"cpus": 30})]}, "models: a replica of big takes 30 cpus"),
        ({"models": [model(engine={"cpus": 4}, vocoder={"cpus": 1})]}, "big takes 5 cpus"),
        (
            {"models": [model(engine={"gpus": 1})]},
            "models: a replica of big takes 1 cpus and 1 gpus",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_value_is_an_error_that_names_it(wrong: Values, says: str) -> None:
    with pytest.raises(helm.HelmError, match=says.replace(".", r"[./]?.*")):
        render(profile("cpu") | wrong)


@pytest.mark.parametrize(
    ("data", "path"),
    [(True, "/data/audit.jsonl"), (True, "/tmp/audit.jsonl"), (False, "/tmp/audit.jsonl")],
)
def test_the_audit_log_may_be_where_front_ends_write(data: bool, path: str) -> None:
    values = {"data": {"enabled": data}, "guards": {"audit": {"path": path}}}
    assert of_kind(render(profile("cpu") | values), "RayService")


@pytest.mark.parametrize("guards", [{"keys_file": None, "audit": {"path": None}}, {"audit": {}}])
def test_what_is_null_counts_as_not_given(guards: Values) -> None:
    (service,) = of_kind(render(profile("cpu") | {"guards": guards}), "RayService")
    (application,) = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]
    settings = Settings.model_validate(application["args"]).guards
    assert settings.keys_file == "/etc/speechlm/keys/keys.yaml"
    assert settings.audit.path is None


def test_an_open_service_needs_no_keys_but_has_to_be_said() -> None:
    values = profile("cpu") | {"apiKeys": {"existingSecret": ""}, "guards": {"open": True}}
    volumes = [volume["name"] for volume in pods(values)["front-end"]["volumes"]]
    assert "keys" not in volumes
