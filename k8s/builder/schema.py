"""The schema of the chart's values: of the application's parts as the settings have them."""

from __future__ import annotations

from typing import Any

from deployments.settings import Settings

_STRING: dict[str, Any] = {"type": "string"}
_BOOLEAN: dict[str, Any] = {"type": "boolean"}
_FREE: dict[str, Any] = {"type": "object"}  # Kubernetes checks it
_FREE_LIST: dict[str, Any] = {"type": "array", "items": _FREE}
_STRINGS: dict[str, Any] = {"type": "object", "additionalProperties": _STRING}
_NAME: dict[str, Any] = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}


_PERCENT: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 100}


def _number(least: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least}


def _one_of(*words: str) -> dict[str, Any]:
    return {"enum": list(words)}


def _object(required: tuple[str, ...] = (), /, **properties: dict[str, Any]) -> dict[str, Any]:
    known = {"type": "object", "additionalProperties": False, "properties": properties}
    return known | ({"required": list(required)} if required else {})


_PLACEMENT = {
    "nodeSelector": _STRINGS,
    "tolerations": _FREE_LIST,
    "affinity": _FREE,
    "annotations": _STRINGS,
}
_GROUP = _PLACEMENT | {"resources": _FREE, "topologySpreadConstraints": _FREE_LIST}
_PEER = _object(namespaceSelector=_FREE, podSelector=_FREE, ipBlock=_FREE)

_CHART: dict[str, dict[str, Any]] = {
    "image": _object(
        ("repository",),
        repository=_STRING,
        tag=_STRING,
        digest={"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
        pullPolicy=_one_of("Always", "IfNotPresent", "Never"),
        pullSecrets=_FREE_LIST,
    ),
    "rayVersion": _STRING,
    "apiKeys": _object(existingSecret=_STRING),
    "modelVolume": _object(
        type=_one_of("image", "persistentVolumeClaim", "hostPath", "copy"),
        mountPath={"type": "string", "pattern": "^/"},
        claimName=_STRING,
        hostPath=_STRING,
        copy=_object(
            image=_STRING,
            command={"type": "array", "items": _STRING},
            env=_FREE_LIST,
            envFrom=_FREE_LIST,
            resources=_FREE,
            sizeLimit=_STRING,
        ),
    ),
    "data": _object(
        enabled=_BOOLEAN,
        existingClaim=_STRING,
        size=_STRING,
        storageClassName=_STRING,
        keep=_BOOLEAN,
    ),
    "head": _object(resources=_FREE, **_PLACEMENT),
    "frontEnds": _object(replicas=_number(1), processes=_number(1), **_GROUP),
    "engineGroups": {
        "type": "array",
        "minItems": 1,
        "items": _object(
            ("name", "replicas", "minReplicas", "maxReplicas", "resources"),
            name=_NAME,
            replicas=_number(0),
            minReplicas=_number(0),
            maxReplicas=_number(1),
            **_GROUP,
        ),
    },
    "autoscaling": _object(enabled=_BOOLEAN, idleTimeoutSeconds=_number(1)),
    "env": _FREE_LIST,
    "envFrom": _FREE_LIST,
    "sidecars": _FREE_LIST,
    "extraVolumes": _FREE_LIST,
    "priorityClassName": _STRING,
    "runtimeClassName": _STRING,
    "podSecurityContext": _FREE,
    "containerSecurityContext": _FREE,
    "scratch": _object(sizeLimit=_STRING),
    "tokenAuth": _object(enabled=_BOOLEAN, existingSecret=_STRING),
    "gcsFaultTolerance": _object(
        enabled=_BOOLEAN,
        redisAddress={"type": "string", "pattern": "^(.+:[0-9]+)?$"},
        existingSecret=_STRING,
        secretKey=_STRING,
    ),
    "upgrade": _object(
        type=_one_of("NewCluster", "None", "NewClusterWithIncrementalUpgrade"),
        incremental=_object(
            gatewayClassName=_STRING,
            stepSizePercent=_PERCENT,
            intervalSeconds=_number(1),
            maxSurgePercent=_PERCENT,
        ),
    ),
    "eviction": _object(replacementSeconds=_number(0)),
    "podDisruptionBudgets": _object(
        enabled=_BOOLEAN, head=_number(0), frontEnds=_number(0), engines=_number(0)
    ),
    "networkPolicy": _object(
        enabled=_BOOLEAN,
        clients={"type": "array", "items": _PEER},
        operator=_PEER,
        prometheus=_PEER,
        egress=_FREE_LIST,
    ),
    "ingress": _object(
        enabled=_BOOLEAN,
        className=_STRING,
        host=_STRING,
        tlsSecret=_STRING,
        annotations=_STRINGS,
    ),
    "monitoring": _object(
        enabled=_BOOLEAN,
        labels=_STRINGS,
        interval=_STRING,
        rules=_BOOLEAN,
        runbook=_STRING,
        dashboards=_BOOLEAN,
        dashboardLabels=_STRINGS,
        dashboardAnnotations=_STRINGS,
    ),
    "extraObjects": _FREE_LIST,
    "global": _FREE,  # Helm's own
}


def values_schema() -> dict[str, Any]:
    """JSON schema of all values. A key that nothing reads is an error."""
    settings = _without_prose(Settings.model_json_schema())
    parts: dict[str, dict[str, Any]] = settings["properties"]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of the speechlm chart",
        "type": "object",
        "additionalProperties": False,
        "required": ["image", "models"],
        "properties": _CHART | parts,
        "$defs": settings["$defs"],
    }


def _without_prose(schema: Any) -> Any:
    """Without titles, descriptions and defaults, which deployments/settings.py has."""
    if isinstance(schema, list):
        return [_without_prose(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    prose = {key for key in ("title", "description", "default") if key in schema}
    if "properties" not in schema:
        return {key: _without_prose(schema[key]) for key in schema.keys() - prose}
    properties = {name: _without_prose(part) for name, part in schema["properties"].items()}
    rest = {key: _without_prose(schema[key]) for key in schema.keys() - prose - {"properties"}}
    return rest | {"properties": properties}
