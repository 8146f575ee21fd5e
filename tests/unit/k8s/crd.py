"""What a custom resource definition says, as a strict JSON schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def schema_of(definition: Path, version: str = "v1") -> dict[str, Any]:
    """The schema of an object. Unlike the API server it takes an unknown key for an error."""
    text = definition.read_text()
    loaded = yaml.load(text, yaml.CSafeLoader)
    versions = {v["name"]: v["schema"]["openAPIV3Schema"] for v in loaded["spec"]["versions"]}
    strict: dict[str, Any] = _strict(versions[version])
    strict["properties"]["metadata"] = {"type": "object"}
    return strict


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in schema.items() if key in _AS_THEY_ARE}
    if schema.get("x-kubernetes-int-or-string"):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    if "properties" in schema:
        made["properties"] = {name: _strict(part) for name, part in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    elif isinstance(extra := schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _strict(extra)
    if "items" in schema:
        made["items"] = _strict(schema["items"])
    if schema.get("nullable"):
        return {"anyOf": [made, {"type": "null"}]}
    return made


_AS_THEY_ARE = {"type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength"} | {
    "minItems",
    "maxItems",
    "required",
}
