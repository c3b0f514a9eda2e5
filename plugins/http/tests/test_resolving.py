"""Name resolution: caching and limits on concurrent lookups."""

import socket
import threading

import anyio
import pytest
import sideband_http._addresses._resolving
from sideband_http._addresses._resolving import NameUnresolved, SystemResolver

pytestmark = pytest.mark.anyio
BOTH_BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])

MAX_LOOKUPS = sideband_http._addresses._resolving._MAX_LOOKUPS
MAX_LOOKUPS_PER_DOMAIN = sideband_http._addresses._resolving._MAX_LOOKUPS_PER_DOMAIN


def address_info(address):
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))


class System:
    """A system resolver that answers while ``released`` is set."""

    def __init__(self, *addresses):
        self.results = [address_info(one) for one in addresses]
        self.lookups = []
        self.began = threading.Semaphore(0)
        self.released = threading.Event()
        self.released.set()

    def __call__(self, host):
        self.lookups.append(host)
        self.began.release()
        self.released.wait(20)
        return self.results


@pytest.fixture
def system():
    made = System("8.8.8.8", "1.1.1.1", "8.8.8.8")
    yield made
    made.released.set()


@pytest.fixture
def resolver(system):
    return SystemResolver(system)


async def test_addresses_are_unique_and_in_order(resolver):
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
async def test_addresses_and_localhost_are_not_looked_up(resolver, system, host, addresses):
    assert [str(one) for one in await resolver.resolve(host, "me")] == addresses
    assert system.lookups == []


async def test_result_is_cached_for_a_limited_time(resolver, system, monkeypatch):
    for _ in range(3):
        await resolver.resolve("h.test", "me")
    assert system.lookups == ["h.test"]
    monkeypatch.setattr(sideband_http._addresses._resolving, "_CACHE_SECONDS", -1.0)
    await resolver.resolve("other.test", "me")
    await resolver.resolve("other.test", "me")
    assert system.lookups == ["h.test", "other.test", "other.test"]


async def test_cache_size_is_limited(resolver, system, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_MAX_CACHED", 2)
    for name in ("a.test", "b.test", "c.test", "c.test", "a.test"):
        await resolver.resolve(name, "me")
    assert system.lookups == ["a.test", "b.test", "c.test", "a.test"]


async def test_failure_is_not_cached(resolver, system):
    system.results = []
    for _ in range(2):
        with pytest.raises(NameUnresolved, match="no address"):
            await resolver.resolve("h.test", "me")
    assert system.lookups == ["h.test"] * 2


async def test_error_of_the_system_is_reported(resolver, system):
    def fail(host):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    with pytest.raises(NameUnresolved, match="Temporary failure"):
        await SystemResolver(fail).resolve("h.test", "me")


@BOTH_BACKENDS
async def test_lookup_times_out(resolver, system, monkeypatch):
    monkeypatch.setattr(sideband_http._addresses._resolving, "_LOOKUP_SECONDS", 0.05)
    system.released.clear()
    with pytest.raises(NameUnresolved, match="timed out"):
        await resolver.resolve("h.test", "me")


async def hang(resolver, system, domain, count):
    """Start lookups and cancel them while their threads are blocked."""
    system.released.clear()
    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(resolver.resolve, f"h{number}.test", domain)
        for _ in range(count):
            await anyio.to_thread.run_sync(system.began.acquire)
        tasks.cancel_scope.cancel()


@BOTH_BACKENDS
async def test_abandoned_lookups_count_toward_the_limit_of_a_domain(resolver, system):
    await hang(resolver, system, "greedy", MAX_LOOKUPS_PER_DOMAIN)
    with pytest.raises(NameUnresolved, match="too many"):
        await resolver.resolve("h.test", "greedy")
    system.released.set()
    assert await resolver.resolve("h.test", "another")


@BOTH_BACKENDS
async def test_slot_is_released_when_the_thread_ends(resolver, system):
    await hang(resolver, system, "greedy", MAX_LOOKUPS_PER_DOMAIN)
    system.released.set()
    with anyio.fail_after(10):
        while True:
            try:
                await resolver.resolve("h.test", "greedy")
            except NameUnresolved:
                await anyio.lowlevel.checkpoint()
            else:
                break


async def test_abandoned_lookups_count_toward_the_total_limit(resolver, system):
    for number in range(MAX_LOOKUPS // MAX_LOOKUPS_PER_DOMAIN):
        await hang(resolver, system, f"greedy{number}", MAX_LOOKUPS_PER_DOMAIN)
    with pytest.raises(NameUnresolved, match="too many"):
        await resolver.resolve("h.test", "another")


@BOTH_BACKENDS
async def test_lookup_cancelled_before_its_thread_starts_releases_its_slot(resolver, system):
    for _ in range(2 * MAX_LOOKUPS_PER_DOMAIN):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await resolver.resolve("h.test", "me")
    assert await resolver.resolve("h.test", "me")


def test_thread_that_starts_after_its_slot_was_released_does_nothing(system):
    slot = sideband_http._addresses._resolving._LookupSlots().acquire("me")
    slot.release_unless_running()
    assert slot.run(system, "h.test") == ()
    assert system.lookups == []
