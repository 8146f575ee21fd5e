"""What scripts of other sites may do, and what browsers are told."""

from deployments.guards.settings import GuardSettings
from tests.unit.deployments.guarded_app import world
from tests.unit.deployments.stand_in import error_of


async def test_without_keys_scripts_of_other_sites_are_refused() -> None:
    async with world(keys=False).client(None) as http:
        foreign = await http.get("/v1/hello", headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
        assert error_of(foreign)["code"] == "wrong_origin"
        for none in ("http://[", "null", ""):
            assert (await http.get("/v1/hello", headers={"origin": none})).status_code == 403
        for both in (["http://localhost", "http://evil"], ["http://evil", "http://localhost"]):
            headers = [("origin", origin) for origin in both]
            assert (await http.get("/v1/hello", headers=headers)).status_code == 403
        own = await http.get("/v1/hello", headers={"origin": "http://localhost"})
        assert own.status_code == 200
    named = GuardSettings(cors_origins=["https://good.example"])
    async with world(named, keys=False).client(None) as http:
        good = await http.get("/v1/hello", headers={"origin": "https://good.example"})
        assert good.status_code == 200


async def test_answers_say_what_browsers_may_do_with_them() -> None:
    made = world()
    made.release.set()
    async with made.client() as http:
        for response in (
            await http.post("/v1/speak"),
            await http.get("/v1/none"),
            await http.post("/v1/fail"),
        ):
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in response.headers["content-security-policy"]
        preflight = await http.options(
            "/v1/hello",
            headers={"origin": "https://a.example", "access-control-request-method": "GET"},
        )
        assert "access-control-allow-origin" not in preflight.headers


async def test_cors_is_for_the_sites_that_are_named() -> None:
    site = "https://a.example"
    async with world(GuardSettings(cors_origins=[site])).client() as http:
        asked = {"access-control-request-method": "POST"}
        asked["access-control-request-headers"] = "authorization, content-type"
        preflight = await http.options(
            "/v1/echo", headers={"origin": site, "authorization": "", **asked}
        )
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == site
        refused = await http.get("/v1/hello", headers={"origin": site, "authorization": "x"})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == site
        assert "x-seed" in refused.headers["access-control-expose-headers"]
        failed = await http.post("/v1/fail", headers={"origin": site})
        assert failed.status_code == 500
        assert failed.headers["access-control-allow-origin"] == site
        foreign = await http.get("/v1/hello", headers={"origin": "https://b.example"})
        assert "access-control-allow-origin" not in foreign.headers
