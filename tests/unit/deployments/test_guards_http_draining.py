"""A front end that is to end: what it still answers."""

import asyncio

import httpx

from deployments.front_end.ingress import create_app
from deployments.guards.runtime import Guards
from deployments.guards.settings import ClientLimits, GuardSettings
from deployments.models.catalog import Catalog
from deployments.settings import ServiceSettings
from tests.unit.deployments.guarded_app import eventually, world
from tests.unit.deployments.stand_in import error_of


async def test_a_front_end_that_is_to_end_lives_and_finishes_but_takes_nothing_new() -> None:
    made = world(GuardSettings(limits=ClientLimits(concurrent_requests=9)))
    async with made.client() as http:
        begun = asyncio.create_task(http.post("/v1/wait"))
        await eventually(lambda: made.limiter.limiter.leases("alice", "request") == 1)
        made.guards.drain.begin()
        for answer in (await http.get("/v1/hello"), await http.post("/v1/echo")):
            error = error_of(answer)
            assert (answer.status_code, error["type"]) == (503, "unavailable")
            assert error["code"] == "draining"
            assert answer.headers["retry-after"] == "2"
        assert (await http.get("/live")).status_code == 200
        assert not begun.done()
        made.release.set()
        assert (await begun).status_code == 200
    await made.guards.end()


async def test_the_health_of_a_front_end_that_is_to_end() -> None:
    guards = Guards(GuardSettings())
    app = create_app(Catalog([], ServiceSettings(), created=1), guards)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost"
    ) as http:
        assert (await http.get("/ready")).status_code == 200
        guards.drain.begin()
        answer = await http.get("/ready")
        assert (answer.status_code, error_of(answer)["code"]) == (503, "draining")
        assert answer.headers["retry-after"] == "2"
        assert (await http.get("/live")).json() == {"status": "live"}
