"""What the pods may do, where they write, and what holds them together."""

from __future__ import annotations

import inspect
import json
import re

import pytest
import yaml

from deployments.settings import Settings
from tests.unit.k8s.chart import (
    PROFILES,
    ROOT,
    Object,
    of_kind,
    pods,
    profile,
    ray_service,
    render,
)

ROLES = ("head", "front-end", "engine")
every_profile = pytest.mark.parametrize("name", PROFILES)
every_role = pytest.mark.parametrize("role", ROLES)


def settings_of(spec: Object) -> Settings:
    """What ``serveConfigV2`` says."""
    (application,) = yaml.safe_load(spec["serveConfigV2"])["applications"]
    return Settings.model_validate(application["args"])


def mounts(pod: Object) -> dict[str, str]:
    """Volumes of the Ray container by where they are mounted."""
    (container,) = pod["containers"]
    return {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}


@every_profile
@every_role
def test_nobody_is_root_and_nothing_can_be_written_but_volumes(name: str, role: str) -> None:
    pod = pods(profile(name))[role]
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]
    env = {variable["name"]: variable["value"] for variable in pod["containers"][0]["env"]}
    assert env["HOME"] == "/tmp"


@every_profile
@every_role
def test_every_container_has_limits_and_probes(name: str, role: str) -> None:
    (container,) = pods(profile(name))[role]["containers"]
    resources = container["resources"]
    assert resources["limits"]["memory"] == resources["requests"]["memory"]
    assert {"cpu", "memory"} <= resources["limits"].keys()
    assert container["livenessProbe"]["httpGet"]["path"] == "/api/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] in ("/api/healthz", "/-/healthz")


@every_profile
def test_nothing_of_ours_runs_on_the_head(name: str) -> None:
    spec = ray_service(profile(name))
    assert spec["rayClusterConfig"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert spec["excludeHeadPodFromServeSvc"] is True


@every_profile
def test_only_front_ends_see_keys_and_data(name: str) -> None:
    of_role = {role: mounts(pod) for role, pod in pods(profile(name)).items()}
    for role in ROLES:
        for path in ("/etc/speechlm/keys", "/data"):
            assert (path in of_role[role]) == (role == "front-end")


def test_front_ends_with_data_share_a_node() -> None:
    (term,) = pods(profile("cpu"))["front-end"]["affinity"]["podAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"]["app.kubernetes.io/component"] == "front-end"


def test_front_ends_with_data_keep_the_affinity_that_they_are_given() -> None:
    wanted = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}
    soft = [{"weight": 1, "podAffinityTerm": wanted}]
    given = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []},
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [wanted],
            "preferredDuringSchedulingIgnoredDuringExecution": soft,
        },
    }
    values = profile("cpu") | {"frontEnds": {"affinity": given}}
    affinity = pods(values)["front-end"]["affinity"]
    assert list(affinity) == ["nodeAffinity", "podAffinity"]
    first, ours = affinity["podAffinity"].pop("requiredDuringSchedulingIgnoredDuringExecution")
    assert first == wanted
    assert ours["topologyKey"] == "kubernetes.io/hostname"
    assert affinity["podAffinity"] == {"preferredDuringSchedulingIgnoredDuringExecution": soft}


def test_front_ends_without_data_may_run_anywhere_and_keep_no_voices() -> None:
    values = profile("cpu") | {"data": {"enabled": False}, "frontEnds": {"replicas": 3}}
    values["service"] = {"max_voices": 0}
    pod = pods(values)["front-end"]
    assert "affinity" not in pod
    assert "/data" not in mounts(pod)
    assert "store: /tmp/store.sqlite3" in ray_service(values)["serveConfigV2"]
    assert of_kind(render(values), "PersistentVolumeClaim") == []


def test_the_claim_outlives_the_release() -> None:
    (claim,) = of_kind(render(profile("cpu")), "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("volume", "source"),
    [
        (
            {"type": "persistentVolumeClaim", "claimName": "m"},
            {"persistentVolumeClaim": {"claimName": "m", "readOnly": True}},
        ),
        ({"type": "hostPath", "hostPath": "/m"}, {"hostPath": {"path": "/m", "type": "Directory"}}),
        ({"type": "copy", "copy": {"image": "c"}}, {"emptyDir": {"sizeLimit": "100Gi"}}),
    ],
    ids=["claim", "host", "copy"],
)
def test_models_can_be_read_everywhere(role: str, volume: Object, source: Object) -> None:
    """The application is built, and a model's card read, wherever Ray wants."""
    pod = pods(profile("cpu") | {"modelVolume": volume})[role]
    assert {"name": "models"} | source in pod["volumes"]
    assert mounts(pod)["/models"] == "models"
    copies = [container["name"] for container in pod.get("initContainers", [])]
    assert copies == (["models"] if volume["type"] == "copy" else [])


@every_role
def test_a_collector_of_logs_is_there_before_ray_and_after_it(role: str) -> None:
    """Kubernetes ends an init container that is always restarted after the others."""
    collector = {
        "name": "logs",
        "image": "collector",
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
    }
    volume = {"name": "position", "emptyDir": {}}
    values = profile("cpu") | {
        "sidecars": [collector],
        "extraVolumes": [volume],
        "modelVolume": {"type": "copy", "copy": {"image": "c"}},
    }
    pod = pods(values)[role]
    first, second = pod["initContainers"]
    assert {name: first[name] for name in collector} == collector
    assert first["restartPolicy"] == "Always"
    assert first["securityContext"]["readOnlyRootFilesystem"] is True
    assert second["name"] == "models"
    assert volume in pod["volumes"]
    assert [container["name"] for container in pod["containers"]] == [f"ray-{role}"]


def test_what_copies_models_may_be_limited() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
    volume = {"type": "copy", "copy": {"image": "c", "resources": resources}}
    pod = pods(profile("cpu") | {"modelVolume": volume})["engine"]
    assert pod["initContainers"][0]["resources"] == resources


@every_profile
def test_requests_end_before_their_cluster_does(name: str) -> None:
    spec = ray_service(profile(name))
    assert spec["rayClusterDeletionDelaySeconds"] > settings_of(spec).service.drain_seconds


@every_profile
@pytest.mark.parametrize("role", ["front-end", "engine"])
def test_an_evicted_pod_waits_for_its_replacement_and_then_for_its_requests(
    name: str, role: str
) -> None:
    """Serve gives a replica its ``graceful_shutdown_timeout_s``, our ``drain_seconds``, before
    Ray's time is over, and Ray's is over before Kubernetes kills."""
    values = profile(name) | {"eviction": {"replacementSeconds": 100}}
    drain = settings_of(ray_service(values)).service.drain_seconds
    pod = pods(values)[role]
    env = {variable["name"]: variable["value"] for variable in pod["containers"][0]["env"]}
    leave = int(env["RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"])
    assert leave == drain + 100
    assert pod["terminationGracePeriodSeconds"] >= leave + 15


def test_ray_waits_as_it_is_told_when_its_node_is_to_end() -> None:
    """It reads the variable that the chart sets."""
    from ray._private import ray_constants

    assert "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S" in inspect.getsource(ray_constants)


def test_only_the_autoscaler_talks_to_kubernetes() -> None:
    of_role = pods(profile("gpu"))
    assert "automountServiceAccountToken" not in of_role["head"]
    assert of_role["engine"]["automountServiceAccountToken"] is False
    assert pods(profile("cpu"))["head"]["automountServiceAccountToken"] is False


def test_the_autoscaler_writes_to_no_root_either() -> None:
    options = ray_service(profile("gpu"))["rayClusterConfig"]["autoscalerOptions"]
    assert options["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "scratch", "mountPath": "/tmp"} in options["volumeMounts"]


@every_profile
def test_ray_asks_for_a_token(name: str) -> None:
    assert ray_service(profile(name))["rayClusterConfig"]["authOptions"] == {"mode": "token"}


def test_the_state_of_the_cluster_goes_to_redis() -> None:
    options = ray_service(profile("gpu"))["rayClusterConfig"]["gcsFaultToleranceOptions"]
    reference = options["redisPassword"]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": "speechlm-redis", "key": "password"}


def test_gpu_engines_go_where_gpus_are() -> None:
    pod = pods(profile("gpu"))["engine"]
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert pod["nodeSelector"]
    assert pod["tolerations"]


@every_profile
def test_selectors_find_the_pods_that_they_mean(name: str) -> None:
    """Budgets, monitors and the network policy select by labels that the pods have."""
    objects = render(profile(name))
    cluster = ray_service(profile(name))["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    labels = [group["template"]["metadata"]["labels"] for group in groups]

    def found(selector: Object) -> set[str]:
        wanted = selector.get("matchLabels", {}).items()
        chosen = [each for each in labels if wanted <= each.items()]
        for expression in selector.get("matchExpressions", []):
            chosen = [e for e in chosen if e[expression["key"]] in expression["values"]]
        return {each["app.kubernetes.io/component"] for each in chosen}

    budgets = {b["metadata"]["name"]: b["spec"] for b in of_kind(objects, "PodDisruptionBudget")}
    for role in ROLES:
        assert found(budgets[f"tts-speechlm-{role}"]["selector"]) == {role}
        assert "minAvailable" in budgets[f"tts-speechlm-{role}"]
    monitors = {m["metadata"]["name"]: m["spec"] for m in of_kind(objects, "PodMonitor")}
    assert found(monitors["tts-speechlm-head"]["selector"]) == {"head"}
    assert found(monitors["tts-speechlm-workers"]["selector"]) == {"front-end", "engine"}
    (policy,) = of_kind(objects, "NetworkPolicy")
    assert found(policy["spec"]["podSelector"]) == set(ROLES)


@every_profile
def test_labels_that_kuberay_selects_by_are_left_to_it(name: str) -> None:
    cluster = ray_service(profile(name))["rayClusterConfig"]
    for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
        labels = group["template"]["metadata"]["labels"]
        assert "app.kubernetes.io/name" not in labels
        assert not [label for label in labels if label.startswith("ray.io/")]


@every_profile
def test_settings_of_the_service_change_no_pod(name: str) -> None:
    """So that Serve alone replaces what they are for; but how long it drains is the pods' too."""

    def cluster(service: Object) -> Object:
        changed = {"service": service, "guards": {"limits": {"concurrent_requests": 3}}}
        found: Object = ray_service(profile(name) | changed)["rayClusterConfig"]
        return found

    assert cluster({"drain_seconds": 60}) == cluster({"drain_seconds": 60, "answer_seconds": 3601})
    assert cluster({"drain_seconds": 60}) != cluster({"drain_seconds": 61})


def test_what_is_documented_changes_the_pods_of_the_engines_that_run() -> None:
    """KubeRay hands no running cluster the numbers that the chart has; a patch does."""
    text = (ROOT / "docs/deploy.md").read_text()
    (patch,) = re.findall(r"patch raycluster \$CLUSTER --type json -p '(.*?)'", text, re.DOTALL)
    cluster = ray_service(profile("cpu"))["rayClusterConfig"]
    operations = json.loads(patch)
    assert [operation["op"] for operation in operations] == ["test", "replace"]
    for operation in operations:
        root, groups, index, field = operation["path"].strip("/").split("/")
        assert (root, groups) == ("spec", "workerGroupSpecs")
        group = cluster[groups][int(index)]
        assert field in group
        assert operation["op"] != "test" or group[field] == operation["value"]


@every_profile
def test_a_new_chart_alone_is_no_new_cluster(name: str) -> None:
    """Only a change of what runs may cost a second cluster."""
    cluster = ray_service(profile(name))["rayClusterConfig"]
    assert "helm.sh/chart" not in str(cluster)


def test_ports_of_the_network_policy_are_those_of_the_pods() -> None:
    (policy,) = of_kind(render(profile("cpu")), "NetworkPolicy")
    named = {
        port["port"]
        for rule in policy["spec"]["ingress"]
        for port in rule.get("ports", [])
        if isinstance(port["port"], str)
    }
    for pod in pods(profile("cpu")).values():
        assert named <= {port["name"] for port in pod["containers"][0]["ports"]}


@every_profile
def test_ray_s_metrics_are_where_prometheus_looks_for_them(name: str) -> None:
    cluster = ray_service(profile(name))["rayClusterConfig"]
    for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]:
        (container,) = group["template"]["spec"]["containers"]
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        assert group["rayStartParams"]["metrics-export-port"] == ports["metrics"]


def test_without_clients_the_network_policy_lets_no_client_in() -> None:
    def rules(clients: list[Object]) -> list[Object]:
        values = profile("cpu") | {"networkPolicy": {"clients": clients}}
        (policy,) = of_kind(render(values), "NetworkPolicy")
        found: list[Object] = policy["spec"]["ingress"]
        assert all(rule["from"] for rule in found)  # an empty one means everybody
        return found

    client = {"podSelector": {"matchLabels": {"app": "web"}}}
    only = {"from": [client], "ports": [{"protocol": "TCP", "port": "serve"}]}
    assert only in rules([client])
    assert rules([]) == [rule for rule in rules([client]) if rule != only]


@every_profile
def test_front_ends_and_limiter_find_room_only_in_their_pods(name: str) -> None:
    spec = ray_service(profile(name))
    (application,) = yaml.safe_load(spec["serveConfigV2"])["applications"]
    resource = application["args"]["service"]["front_end_resource"]
    groups = {
        g["groupName"]: g["rayStartParams"] for g in spec["rayClusterConfig"]["workerGroupSpecs"]
    }
    offered = json.loads(groups.pop("front-ends")["resources"].strip("'"))
    assert offered[resource] > application["args"]["service"]["ingress_replicas"]
    assert all("resources" not in parameters for parameters in groups.values())
