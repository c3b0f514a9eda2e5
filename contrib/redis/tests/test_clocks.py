"""A server whose clock was set: nothing is made too late, and nothing is held for longer than an hour."""

import re
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from anyio import to_thread
from sideband_redis import RedisBusy, open_redis

from .test_locks import expire

pytestmark = pytest.mark.anyio

HOUR = 3_600
FAR = 10**15
BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@asynccontextmanager
async def other_clock(server, seconds):
    """Yield an address at which each connection gets another time at first, as if the clock was set after that."""

    async def serve(client):
        upstream = await anyio.connect_tcp("127.0.0.1", server.port)
        async with client, upstream, anyio.create_task_group() as tasks:
            tasks.start_soon(copy, client, upstream, lambda data: data)
            tasks.start_soon(copy, upstream, client, shift())

    def shift():
        left = [1]

        def change(data):
            def moved(found):
                left[0] -= 1
                return b"*2\r\n$10\r\n%d\r\n" % (int(found[1]) + seconds)

            return re.sub(rb"\*2\r\n\$10\r\n(\d{10})\r\n", moved, data) if left[0] else data

        return change

    async def copy(source, target, change):
        with suppress(*BROKEN):
            while True:
                await target.send(change(await source.receive()))
        await target.aclose()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"redis://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("seconds", [-HOUR, HOUR], ids=["forward", "back"])
async def test_writes_succeed_after_the_clock_was_set(own_server, config, seconds):
    async with other_clock(own_server, seconds) as address, open_redis(config(address=address)) as store:
        assert await store.put("a", {"n": 1}) == 1
        assert await store.try_lock("session")
        async with store.transaction() as transaction:
            assert await transaction.put("a", {"n": 2}) == 2


async def test_write_that_was_given_up_is_not_made_later_although_the_clock_was_set_back(own_server, config):
    options = {"command_seconds": 0.5, "wait_seconds": 2}
    async with other_clock(own_server, HOUR) as address, open_redis(config(address=address, **options)) as store:
        assert await store.get("a") is None
        own_server.pause()
        try:
            with pytest.raises(RedisBusy):
                await store.put("a", {"n": 1})
        finally:
            await to_thread.run_sync(own_server.go_on)
        assert await store.get("a") is None
        assert await store.put("a", {"n": 2}) == 1


async def test_lock_of_a_killed_host_becomes_free_although_the_clock_was_set_back(server, config):
    async with open_redis(config(grace_seconds=0, lost_seconds=0.3)) as other, open_redis(config()) as killed:
        assert await killed.try_lock("session")
        expire(server, killed, FAR)
        with anyio.fail_after(10):
            while not await other.try_lock("session"):  # noqa: ASYNC110  a store does not tell when a lock is free
                await anyio.sleep(0.05)


@pytest.mark.parametrize("options", [(), ("PX", FAR)], ids=["no end", "clock set back"])
async def test_transaction_that_would_not_end_for_hours_is_ended(server, config, prefix, options):
    async with open_redis(config(wait_seconds=1)) as store:
        for use in (put, put_within):
            server.send("SET", f"{{{prefix}}}:transaction", "other", *options)
            await use(store)


async def put(store):
    await store.put("a", {})


async def put_within(store):
    async with store.transaction() as transaction:
        await transaction.put("b", {})
