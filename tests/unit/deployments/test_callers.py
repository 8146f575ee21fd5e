"""A replica learns that whoever asked it has been killed."""

from deployments.replica.callers import Callers


async def test_a_caller_is_there_until_it_is_seen_to_be_gone() -> None:
    alive = {"a", "b"}
    callers = Callers(alive.__contains__)
    with callers.calling("a") as a, callers.calling("b") as b, callers.calling(None) as unnamed:
        await callers.look()
        assert a()
        alive.remove("a")
        assert a()  # nobody has looked yet
        await callers.look()
        assert not a()
        assert b()
        assert unnamed()


async def test_only_those_with_requests_are_asked_for() -> None:
    asked: list[str] = []

    def lives(name: str) -> bool:
        asked.append(name)
        return True

    callers = Callers(lives)
    with callers.calling("a"):
        with callers.calling("a"):
            pass
        await callers.look()
    await callers.look()
    assert asked == ["a"]


async def test_a_request_that_ends_while_its_caller_is_looked_for_leaves_nothing() -> None:
    callers = Callers(lambda name: False)
    with callers.calling("a"):
        pass
    await callers.look()
    with callers.calling("a") as still_there:
        assert still_there()
        await callers.look()
        assert not still_there()
