"""``/docs``: everything that ``/openapi.json`` says, in a document that needs nothing else."""

import base64
import hashlib
import re
from html import unescape
from typing import Any

import pytest

from deployments.front_end.openapi_page import render
from tests.unit.deployments.speaking_stand_in import StandIn, client


async def page_and_description() -> tuple[str, str, dict[str, Any]]:
    """The document, its policy, and the description it was made of."""
    async with client(StandIn()) as http:
        page = await http.get("/docs")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        description: dict[str, Any] = (await http.get("/openapi.json")).json()
        assert (await http.get("/redoc")).status_code == 404
    return page.text, page.headers["content-security-policy"], description


async def test_every_endpoint_field_and_status_is_there() -> None:
    page, _, description = await page_and_description()
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            assert f"<h2>{method.upper()} {path}</h2>" in page
            section = page.split(f"<h2>{method.upper()} {path}</h2>")[1].partition("<h2")[0]
            for status in operation["responses"]:
                assert f"<code>{status}</code>" in section
            for parameter in operation.get("parameters", ()):
                assert f"<code>{parameter['name']}</code>" in section
    for name, schema in description["components"]["schemas"].items():
        section = page.split(f'<h2 id="{name}">')[1].partition("<h2")[0]
        for field in schema.get("properties", {}):
            assert f"<code>{field}</code>" in section, f"{name}.{field}"


async def test_it_asks_nobody_for_anything() -> None:
    page, policy, _ = await page_and_description()
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}';" in policy
    assert "default-src 'none'; script-src 'none';" in policy
    assert not re.search(r"<script|<link|<img|<iframe|url\(|@import|\bsrc=|\bstyle=", page)
    targets = set(re.findall(r'href="([^"]*)"', page))
    assert {t for t in targets if not t.startswith("#")} == {"openapi.json"}
    anchors = re.findall(r' id="([^"]*)"', page)
    assert {t.removeprefix("#") for t in targets - {"openapi.json"}} <= set(anchors)
    assert len(anchors) == len(set(anchors))


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "integer", "minimum": 8000.0, "maximum": 48000.0}, "integer, ≥ 8000, ≤ 48000"),
        ({"type": "number", "exclusiveMinimum": 0.0}, "number, > 0"),
        ({"type": "string", "maxLength": 512}, "string, at most 512 characters"),
        ({"enum": ["audio", "sse"], "default": "audio"}, '"audio", "sse", default "audio"'),
        ({"const": False}, "false"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "boolean or null"),
        ({"type": "array", "items": {"$ref": "#/components/schemas/T"}}, "array of T"),
        ({"type": "string", "format": "binary"}, "string, binary"),
        ({}, "any"),
    ],
)
def test_what_a_field_may_be(schema: dict[str, Any], says: str) -> None:
    page = render(
        {
            "info": {"title": "t"},
            "paths": {},
            "components": {"schemas": {"T": {"properties": {"field": schema}}}},
        }
    )
    [cell] = re.findall(r"<code>field</code></th><td>(.*?)</td>", page)
    assert unescape(re.sub(r"<[^>]*>", "", cell)) == says


def test_texts_are_texts() -> None:
    bad = "<script>alert(1)</script>"
    answer = {"200": {"description": bad}}
    page = render(
        {
            "info": {"title": bad},
            "paths": {f"/{bad}": {"get": {"description": f"``{bad}``", "responses": answer}}},
            "components": {"schemas": {f'"{bad}': {"description": bad, "const": bad}}},
        }
    )
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 9
