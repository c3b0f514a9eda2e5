"""From names to addresses: what is remembered, and who waits for whom."""

import socket
import threading

import anyio
import pytest
import sideband_http._addresses._resolving
from sideband_http._addresses._resolving import NameUnresolved, SystemResolver

pytestmark = pytest.mark.anyio

MOST = sideband_http._addresses._resolving._MOST_LOOKUPS
MOST_FOR_ONE = sideband_http._addresses._resolving._MOST_FOR_ONE


def place(address):
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))


class System:
    """A system's resolver that answers when it is let."""

    def __init__(self, *addresses):
        self.places = [place(one) for one in addresses]
        self.asked = []
        self.began = threading.Semaphore(0)
        self.let = threading.Event()
        self.let.set()

    def __call__(self, host):
        self.asked.append(host)
        self.began.release()
        self.let.wait(20)
        return self.places


@pytest.fixture
def system():
    made = System("8.8.8.8", "1.1.1.1", "8.8.8.8")
    yield made
    made.let.set()


@pytest.fixture
def resolver(system):
    return SystemResolver(system)


async def test_a_name_has_its_addresses_each_once_in_order(resolver):
    assert [str(one) for one in await resolver.resolve("h.test", "me")] == ["8.8.8.8", "1.1.1.1"]


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("127.0.0.1", ["127.0.0.1"]),
        ("::1", ["::1"]),
        ("localhost", ["127.0.0.1", "::1"]),
        ("x.localhost", ["127.0.0.1", "::1"]),
    ],
)
async def test_nobody_is_asked_about_addresses_and_this_machine(resolver, system, host, addresses):
    assert [str(one) for one in await resolver.resolve(host, "me")] == addresses
    assert system.asked == []


async def test_an_answer_is_remembered_for_a_while(resolver, system, monkeypatch):
    for _ in range(3):
        await resolver.resolve("h.test", "me")
    assert system.asked == ["h.test"]
    monkeypatch.setattr(sideband_http._addresses._resolving, "_REMEMBERED_SECONDS", -1.0)
    await resolver.resolve("other.test", "me")
    await resolver.resolve("other.test", "me")
    assert system.asked == ["h.test", "other.test", "other.test"]


async def test_what_is_remembered_has_a_limit(resolver, system, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_MOST_REMEMBERED", 2)
    for name in ("a.test", "b.test", "c.test", "c.test", "a.test"):
        await resolver.resolve(name, "me")
    assert system.asked == ["a.test", "b.test", "c.test", "a.test"]


async def test_a_failure_is_not_remembered(resolver, system):
    system.places = []
    for _ in range(2):
        with pytest.raises(NameUnresolved, match="no address"):
            await resolver.resolve("h.test", "me")
    assert system.asked == ["h.test"] * 2


async def test_what_the_system_raises_is_said(resolver, system):
    def fail(host):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with pytest.raises(NameUnresolved, match="Temporary failure"):
        await SystemResolver(fail).resolve("h.test", "me")


async def test_a_system_that_does_not_answer_is_not_waited_for(resolver, system, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_SECONDS", 0.05)
    system.let.clear()
    with pytest.raises(NameUnresolved, match="no name server answered"):
        await resolver.resolve("h.test", "me")


async def hang(resolver, system, domain, count):
    """Leave so many lookups behind that nobody waits for any more."""
    system.let.clear()
    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(resolver.resolve, f"h{number}.test", domain)
        for _ in range(count):
            await anyio.to_thread.run_sync(system.began.acquire)
        tasks.cancel_scope.cancel()


async def test_one_who_leaves_lookups_behind_gets_no_more(resolver, system):
    await hang(resolver, system, "greedy", MOST_FOR_ONE)
    with pytest.raises(NameUnresolved, match="too many"):
        await resolver.resolve("h.test", "greedy")
    system.let.set()
    assert await resolver.resolve("h.test", "another")


async def test_a_place_is_free_once_the_system_has_answered(resolver, system):
    await hang(resolver, system, "greedy", MOST_FOR_ONE)
    system.let.set()
    with anyio.fail_after(10):
        while True:
            try:
                await resolver.resolve("h.test", "greedy")
            except NameUnresolved:
                await anyio.lowlevel.checkpoint()
            else:
                break


async def test_all_together_leave_no_more_behind_than_there_are_places(resolver, system):
    for number in range(MOST // MOST_FOR_ONE):
        await hang(resolver, system, f"greedy{number}", MOST_FOR_ONE)
    with pytest.raises(NameUnresolved, match="too many"):
        await resolver.resolve("h.test", "another")


async def test_a_lookup_that_is_cancelled_before_it_began_leaves_nothing(resolver, system):
    for _ in range(2 * MOST_FOR_ONE):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await resolver.resolve("h.test", "me")
    assert await resolver.resolve("h.test", "me")


def test_a_thread_that_begins_after_all_have_left_asks_nobody(system):
    place = sideband_http._addresses._resolving._LookupPlaces().take("me")
    place.leave_unless_used()
    assert place.use(system, "h.test") == ()
    assert system.asked == []
