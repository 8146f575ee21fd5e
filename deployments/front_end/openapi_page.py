"""An OpenAPI description as one HTML document that needs nothing else: no script, no request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

Schema = Mapping[str, Any]

_REFERENCE = "#/components/schemas/"
_BOUNDS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
}
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; font: 1rem/1.5 system-ui, sans-serif; }
h2 { margin: 2.5rem 0 0.5rem; border-top: 1px solid; padding-top: 0.75rem; font-size: 1.15rem; }
h3 { margin: 1.25rem 0 0.25rem; font-size: 1rem; }
code, h2 { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code { font-size: 0.9em; }
p { margin: 0.25rem 0; white-space: pre-line; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; border-bottom: 1px solid #8885; text-align: left;
  vertical-align: top; font-weight: normal; }
thead th { font-weight: bold; }
"""


def render(description: Schema) -> str:
    """The document.

    Args:
        description: OpenAPI 3.1, as FastAPI makes it.
    """
    title = escape(description["info"]["title"])
    operations = [
        _operation(method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    schemas = description.get("components", {}).get("schemas", {})
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>The interface of {title}</title>",
            f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{title}</h1>",
            '<p>For programs: <a href="openapi.json">openapi.json</a></p>',
            *operations,
            *(_named(name, schema) for name, schema in schemas.items()),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _operation(method: str, path: str, operation: Schema) -> str:
    parts = [f"<h2>{method.upper()} {escape(path)}</h2>", _prose(operation.get("description"))]
    if parameters := operation.get("parameters"):
        rows = [
            (p["name"], f"{_type(p['schema'])}, in the {escape(p['in'])}", _need(p.get("required")))
            for p in parameters
        ]
        parts += ["<h3>Parameters</h3>", _table("name", rows)]
    if body := operation.get("requestBody"):
        parts += ["<h3>Body</h3>", _contents(body["content"])]
    answers = [
        (status, _prose(answer.get("description")), _contents(answer.get("content", {})))
        for status, answer in operation["responses"].items()
    ]
    return "\n".join(filter(None, [*parts, "<h3>Answers</h3>", _table("status", answers)]))


def _contents(content: Schema) -> str:
    """Media types, those with the same schema together."""
    kinds: dict[str, list[str]] = {}
    for media_type, media in content.items():
        kinds.setdefault(_type(media.get("schema", {})), []).append(media_type)
    return "\n".join(f"<p>{_codes(types)}: {kind}</p>" for kind, types in kinds.items())


def _named(name: str, schema: Schema) -> str:
    """A schema that others refer to."""
    required = schema.get("required", ())
    rows = [
        (field, _type(of) + _default(of), _need(field in required))
        for field, of in schema.get("properties", {}).items()
    ]
    anchor = escape(name, quote=True)
    parts = [f'<h2 id="{anchor}">{escape(name)}</h2>', _prose(schema.get("description"))]
    parts.append(_table("name", rows) if rows else f"<p>{_type(schema)}</p>")
    return "\n".join(filter(None, parts))


def _table(first: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """Rows of a text and two pieces of HTML.

    Args:
        first: what the texts are.
    """
    lines = [
        f'<tr><th scope="row"><code>{escape(text)}</code></th><td>{one}</td><td>{two}</td></tr>'
        for text, one, two in rows
    ]
    return (
        f'<div class="wide"><table><thead><tr><th scope="col">{first}</th>'
        f'<td colspan="2"></td></tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
    )


def _need(required: bool | None) -> str:
    return "required" if required else ""


def _type(schema: Schema) -> str:
    """HTML of what a schema allows."""
    if reference := schema.get("$ref"):
        name = escape(reference.removeprefix(_REFERENCE), quote=True)
        return f'<a href="#{name}">{name}</a>'
    for key in ("anyOf", "oneOf"):
        if choices := schema.get(key):
            return " or ".join(dict.fromkeys(map(_type, choices)))
    if "const" in schema:
        return _codes([_literal(schema["const"])])
    if "enum" in schema:
        return _codes(map(_literal, schema["enum"]))
    kind = escape(str(schema.get("type", "any")))
    if kind == "array":
        kind = f"array of {_type(schema.get('items', {}))}"
    return ", ".join([kind, *_bounds(schema)])


def _bounds(schema: Schema) -> Iterator[str]:
    if "format" in schema:
        yield escape(schema["format"])
    for key, words in _BOUNDS.items():
        if key in schema:
            yield escape(words.format(f"{schema[key]:g}"))


def _default(schema: Schema) -> str:
    return f", default {_codes([_literal(schema['default'])])}" if "default" in schema else ""


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(f"<code>{escape(text)}</code>" for text in texts)


def _prose(text: str | None) -> str:
    """A docstring: what stands between double backquotes is code."""
    if not text:
        return ""
    marked = re.sub(r"``(.+?)``", r"<code>\1</code>", escape(text))
    return f"<p>{marked}</p>"
