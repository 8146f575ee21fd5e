"""An application of the tests behind the guards, with the real limiter in-process."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import Response, StreamingResponse

from deployments.front_end import errors, sse
from deployments.guards.keys import hash_key
from deployments.guards.limits import Decision, Denied, Granted, LeaseReport, Limiter
from deployments.guards.runtime import Guards
from deployments.guards.settings import ClientLimits, GuardSettings
from deployments.guards.usage import Usage
from deployments.settings import ServiceSettings

KEY = "sk-speechlm-alice"
OTHER = "sk-speechlm-bob"
ENVIRONMENT = {"SPEECHLM_API_KEYS": f"alice={hash_key(KEY)} bob={OTHER}"}
BEARER = {"authorization": f"Bearer {KEY}"}


@dataclass
class InProcess:
    """The limiter, as if it were elsewhere."""

    limiter: Limiter = field(default_factory=lambda: Limiter(Usage(None), 30, 10))
    fails: bool = False
    calls: int = 0

    async def acquire(self, front_end: str, request: LeaseReport, limits: ClientLimits) -> Decision:
        await self._travel()
        return self.limiter.acquire(front_end, request, limits, time.time())

    async def go_on(self, request: LeaseReport, limits: ClientLimits) -> Granted | Denied:
        await self._travel()
        return self.limiter.go_on(request, limits, time.time())

    async def report(
        self, front_end: str, live: list[LeaseReport], ended: list[LeaseReport]
    ) -> None:
        await self._travel()
        self.limiter.report(front_end, live, ended, time.time())

    async def _travel(self) -> None:
        self.calls += 1
        await asyncio.sleep(0)
        if self.fails:
            raise ConnectionError("nobody there")


@dataclass
class World:
    """An application, what is around it, and what its routes have seen."""

    app: FastAPI
    guards: Guards
    limiter: InProcess
    release: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[dict[str, Any]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def client(self, key: str | None = KEY, *, raises: bool = False) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, raise_app_exceptions=raises),
            base_url="http://localhost",
            headers={} if key is None else {"authorization": f"Bearer {key}"},
        )


def world(
    settings: GuardSettings | None = None,
    service: ServiceSettings | None = None,
    *,
    keys: bool = True,
) -> World:
    service = service or ServiceSettings()
    limiter = InProcess()
    guards = Guards.begin(
        settings or GuardSettings(), service, limiter, ENVIRONMENT if keys else {}
    )
    app = FastAPI()
    guards.install(app, service)
    errors.install(app)
    made = World(app, guards, limiter)

    @app.get("/live")
    async def live() -> str:
        return "live"

    @app.get("/v1/hello")
    async def hello(request: Request) -> str:
        caller = request.state.caller
        headers = dict(request.headers)
        made.seen.append({"client": caller.client, "headers": headers})
        return "hello"

    @app.post("/v1/echo")
    @app.post("/v1/audio/transcriptions")
    async def echo(request: Request) -> Response:
        return Response(await request.body())

    @app.post("/v1/wait")
    async def wait(request: Request) -> str:
        request.state.at_end.callback(made.ended.append, "wait")
        await made.release.wait()
        return "done"

    @app.post("/v1/fail")
    async def fail() -> None:
        raise RuntimeError("broken")

    @app.post("/v1/speak")
    async def speak(
        request: Request, seconds: float = 1.0, typed: bool = False
    ) -> StreamingResponse:
        audit = request.state.audit
        audit.model, audit.text, audit.seed = "demo", "Hello.", 7
        request.state.at_end.callback(made.ended.append, "speak")

        async def pieces() -> AsyncIterator[bytes]:
            try:
                audit.output_seconds += seconds
                yield b"ab"
                await made.release.wait()
                yield b"cd"
            finally:
                made.ended.append("pieces")

        if typed:
            request.state.at_deadline = sse.failure
        return StreamingResponse(pieces(), media_type="audio/pcm")

    @app.websocket("/v1/talk")
    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        assert "authorization" not in socket.headers
        made.seen.append({"client": socket.state.caller.client, **dict(socket.headers)})
        async for text in socket.iter_text():
            socket.state.audit.output_seconds += 1
            await socket.send_text(text)

    return made


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0.005)
