"""``/``: a page to try the service, one document that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

_SOURCES = files("deployments.page")


def router() -> APIRouter:
    """The page. Its script asks ``/v1/models`` what there is."""
    routes = APIRouter(include_in_schema=False)
    document = compose()
    headers = {
        "cache-control": "no-cache",
        "content-security-policy": content_security_policy(document),
    }

    @routes.head("/")
    @routes.get("/")
    async def page() -> HTMLResponse:
        """The page to try the service."""
        return HTMLResponse(document, headers=headers)

    return routes


def compose() -> str:
    """``page.html`` with its style and scripts in the places that name their files."""
    return re.sub(
        r"/\* ([a-z]+\.(?:css|js)) \*/\n", lambda named: _read(named[1]), _read("page.html")
    )


def content_security_policy(document: str) -> str:
    """Allows what is written in the document, and requests to where it came from; nothing else."""
    style, script = (
        _digest(re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", document, re.DOTALL))
        for tag in ("style", "script")
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _digest(texts: list[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests) or "'none'"


def _read(name: str) -> str:
    return (_SOURCES / name).read_text(encoding="utf-8")
