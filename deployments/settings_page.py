"""docs/settings.md, made of the settings and what their docstrings say:
``python -m deployments.settings_page``."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from deployments.settings import Settings

_OPENING = """\
# Settings

Made by `python -m deployments.settings_page`: do not edit.

The `args` of the application in `serve_config.yaml`. A key that is not known and a value of another
type are errors, which name their place. A dot is a key within a key, `models` is a list, and
`{a,b}` are either of them:

```yaml
      args:
        models:
          - id: demo-voice
            path: demo_voice/model
            engine: {max_rows: 64}          # models.engine.max_rows
        guards:
          audit: {path: audit.jsonl}        # guards.audit.path
```

Host and port are Serve's own: `http_options` beside `applications`, or `--host` and `--port` of
`speechlm serve`."""
_NAMES: dict[Any, str] = {int: "whole number", float: "number", bool: "true or false", str: "text"}
_ENTRY = re.compile(r"([a-z_]+(?:, [a-z_]+)*): (.*)")


def page() -> str:
    """The whole page."""
    return "\n\n".join([_OPENING, *_sections("", Settings)]) + "\n"


def descriptions(group: type[BaseModel]) -> dict[str, str]:
    """What the docstring of a group of settings says of each."""
    _, _, attributes = inspect.cleandoc(group.__doc__ or "").partition("Attributes:\n")
    entries: list[str] = []
    for line in inspect.cleandoc(attributes).splitlines():
        if line.startswith(" "):
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line)
    found: dict[str, str] = {}
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        assert match is not None, entry
        found |= dict.fromkeys(match[1].split(", "), match[2])
    return found


def _sections(prefix: str, group: type[BaseModel], made: Sequence[BaseModel] = ()) -> Iterator[str]:
    """
    Args:
        made: the groups themselves that there are by default, if there are some.
    """
    plain: dict[str, FieldInfo] = {}
    groups: dict[type[BaseModel], list[str]] = {}
    for name, field in group.model_fields.items():
        inner = _group_of(field.annotation)
        if inner is None:
            plain[name] = field
        else:
            groups.setdefault(inner, []).append(name)
    if plain:
        said = descriptions(group)
        title = inspect.cleandoc(group.__doc__ or "").partition("\n")[0].rstrip(".:")
        rows = ["| setting | | default | |", "|---|---|---|---|"]
        rows += [
            f"| `{prefix}{name}` | {_kind(field)} | {_default(name, field, made)} "
            f"| {_sentence(said[name])} |"
            for name, field in plain.items()
        ]
        yield f"## {_sentence(title)}"
        yield "\n".join(rows)
    for inner, names in groups.items():
        defaults = [group.model_fields[name].get_default() for name in names]
        several = f"{{{','.join(names)}}}" if len(names) > 1 else names[0]
        instances = [each for each in defaults if isinstance(each, BaseModel)]
        yield from _sections(f"{prefix}{several}.", inner, instances)


def _sentence(said: str) -> str:
    said = re.sub(r"\bNone\b", "`null`", said.replace("``", "`"))
    return _linked(said[:1].upper() + said[1:])


def _linked(text: str) -> str:
    return re.sub(r"docs/([a-z-]+\.md)", r"[\1](\1)", text)


def _group_of(annotation: Any) -> type[BaseModel] | None:
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None


def _kind(field: FieldInfo) -> str:
    kind = _words(field.annotation)
    bounds = []
    for bound in field.metadata:
        if isinstance(bound, Gt):
            bounds.append(f"above {bound.gt:g}")
        elif isinstance(bound, Ge):
            bounds.append(f"at least {bound.ge:g}")
        elif isinstance(bound, Le):
            bounds.append(f"at most {bound.le:g}")
    return ", ".join([kind, *bounds])


def _words(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin is list:
        return f"list of {_words(arguments[0])}s"
    if origin is UnionType or NoneType in arguments:
        return " or ".join(_words(each) for each in arguments if each is not NoneType)
    return _NAMES[annotation]


def _default(name: str, field: FieldInfo, made: Sequence[BaseModel]) -> str:
    if made:
        return ", ".join(_value(getattr(group, name)) for group in made)
    return (
        "required" if field.is_required() else _value(field.get_default(call_default_factory=True))
    )


def _value(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{json.dumps(value)}`"


if __name__ == "__main__":
    print(page(), end="")
