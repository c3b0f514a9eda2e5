"""Locks of hosts that share a store, and what a host that has lost them may still do: nothing."""

import time
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from anyio import to_thread
from sideband_redis import RedisCutOff, RedisUnreachable, open_redis

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_host_that_has_lost_its_locks_cannot_write_and_others_can(server, config):
    async with open_redis(config()) as lost, open_redis(config(grace_seconds=0)) as other:
        await lost.put("a", {"by": "lost"})
        assert await lost.try_lock("session")
        await lost.append("s", [{"by": "lost"}])
        expire(server, lost)
        assert await other.try_lock("session")
        await other.put("a", {"by": "other"})
        for write in (lost.put("a", {"by": "lost"}), lost.append("s", [{}]), lost.delete("a"), lost.try_lock("new")):
            with pytest.raises(RedisCutOff) as caught:
                await write
            assert (caught.value.code, caught.value.retryable) == ("redis.cut_off", False)
            assert "restart the host" in caught.value.hint
        for use in (lost.delete_stream("s"), lost.unlock("session"), lost.get("a"), lost.keys(), lost.read("s")):
            with pytest.raises(RedisCutOff):
                await use
        with pytest.raises(RedisCutOff):
            await put_within(lost)
    async with open_redis(config(server)) as reader:
        assert (await reader.get("a")).value == {"by": "other"}
        assert len(await reader.read("s")) == 1
        assert await reader.try_lock("session")


def holders(server, store):
    return server.send("ZRANGE", f"{{{store.config.prefix}}}:holders", 0, -1).decode().split("\r\n")[2::2]


def expire(server, store, ended=1):
    """Let the time of all holders have ended, in milliseconds since 1970, as if they had shown no sign of life."""
    for name in holders(server, store):
        server.send("ZADD", f"{{{store.config.prefix}}}:holders", ended, name)


async def put_within(store):
    async with store.transaction() as transaction:
        await transaction.put("a", {"by": "lost"})


async def test_transaction_of_a_host_that_loses_its_locks_meanwhile_writes_nothing(server, config):
    async with open_redis(config()) as lost, open_redis(config(grace_seconds=0)) as other:
        assert await lost.try_lock("session")

        async def lose():
            async with lost.transaction() as transaction:
                await transaction.put("a", {"by": "lost"})
                expire(server, lost)
                assert await other.try_lock("session")

        with pytest.raises(RedisCutOff):
            await lose()
        assert await other.get("a") is None


async def test_host_that_shows_no_sign_of_life_keeps_its_locks_until_another_wants_one(server, config):
    async with open_redis(config()) as host, open_redis(config(grace_seconds=0)) as other:
        assert await host.try_lock("session")
        expire(server, host)
        await host.put("a", {})
        assert not await other.try_lock("session")


async def test_host_that_loses_a_lock_loses_all(server, config):
    async with open_redis(config()) as lost, open_redis(config(grace_seconds=0)) as other:
        for name in ("session", "second", "third"):
            assert await lost.try_lock(name)
        expire(server, lost)
        assert await other.try_lock("session")
        assert server.send("HLEN", f"{{{lost.config.prefix}}}:locks") == b":1\r\n"
        assert await other.try_lock("second")


async def test_host_that_shows_no_sign_of_life_for_a_moment_stays_when_others_come(server, config):
    async with open_redis(config()) as host:
        assert await host.try_lock("session")
        expire(server, host, int(time.time() * 1_000) - 60_000)
        async with open_redis(config()):
            await host.put("a", {})
            await host.unlock("session")


async def test_host_that_shows_a_sign_of_life_within_the_grace_keeps_its_locks(server, config):
    async with open_redis(config()) as host, open_redis(config(grace_seconds=60)) as other:
        assert await host.try_lock("session")
        expire(server, host)
        taken = []
        async with anyio.create_task_group() as tasks:

            async def take():
                taken.append(await other.try_lock("session"))

            tasks.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            await host.put("a", {})
        assert taken == [False]


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_idle_host_keeps_its_locks_for_longer_than_its_time(config):
    async with open_redis(config(lost_seconds=1)) as host, open_redis(config(grace_seconds=0)) as other:
        assert await host.try_lock("session")
        with anyio.move_on_after(1.6):
            while True:
                assert not await other.try_lock("session")
                await anyio.sleep(0.05)


async def test_idle_host_keeps_its_locks_through_a_crash_of_the_server(own_server, config):
    options = {"lost_seconds": 3_600, "grace_seconds": 5}
    async with open_redis(config(own_server, **options)) as host:
        assert await host.try_lock("session")
        async with open_redis(config(own_server, **options)) as other:
            for stop in (own_server.kill, own_server.stop):
                expire(own_server, host)
                await to_thread.run_sync(stop)
                await to_thread.run_sync(own_server.start)
                assert not await other.try_lock("session")
            await host.unlock("session")
            assert await other.try_lock("session")


@pytest.mark.parametrize("lose", ["flush", "empty server"])
async def test_host_writes_nothing_to_a_server_that_has_lost_its_data(own_server, config, tmp_path, lose):
    async with open_redis(config(own_server)) as host:
        await host.put("a", {})
        assert await host.try_lock("session")
        if lose == "flush":
            own_server.send("FLUSHALL")
        else:
            await to_thread.run_sync(own_server.start_empty)
        for use in (host.put("a", {}, version=0), host.append("s", [{}]), host.try_lock("session"), host.get("a")):
            with pytest.raises(RedisCutOff):
                await use
        assert own_server.send("DBSIZE") == b":0\r\n"
        async with open_redis(config(own_server)) as other:
            assert await other.keys() == ()
            assert await other.try_lock("session")


async def test_cancelled_lock_is_not_held(config):
    async with open_redis(config()) as one, open_redis(config()) as other:
        for number in range(60):
            taken = False
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cancel_after, scope, number / 20_000)
                    taken = await one.try_lock(f"{number}")
            assert scope.cancelled_caught or taken
            assert await other.try_lock(f"{number}") != taken


async def cancel_after(scope, seconds):
    await anyio.sleep(seconds)  # to cancel at each of the places where it waits for the server
    scope.cancel()


async def lose_answer(server, store):
    """Let a lock be taken after its attempt was cancelled, and after the attempt to release it."""
    assert await store.try_lock("before")  # the server then knows the script
    server.pause()
    try:
        with anyio.move_on_after(0.05) as scope:
            await store.try_lock("session")
        assert scope.cancelled_caught
    finally:
        server.go_on()


async def test_lock_that_is_taken_after_its_attempt_was_given_up_becomes_free(own_server, config):
    async with (
        open_redis(config(own_server, lost_seconds=3)) as one,
        open_redis(config(own_server)) as other,
    ):
        await lose_answer(own_server, one)
        assert not await other.try_lock("session")
        with anyio.fail_after(10):
            while not await other.try_lock("session"):  # noqa: ASYNC110  a store does not tell when a lock is free
                await anyio.sleep(0.05)


async def test_lock_that_is_taken_after_its_attempt_was_given_up_can_be_taken_again(own_server, config):
    async with open_redis(config(own_server)) as one, open_redis(config(own_server)) as other:
        await lose_answer(own_server, one)
        assert await one.try_lock("session")
        assert not await one.try_lock("session")
        await one.unlock("session")
        assert await other.try_lock("session")


@asynccontextmanager
async def slow_network(server):
    """Yield an address, and a function: what is next sent about "session" arrives when the event it returns is set."""
    held = []

    async def serve(client):
        upstream = await anyio.connect_tcp("127.0.0.1", server.port)
        async with client, upstream, anyio.create_task_group() as tasks:
            tasks.start_soon(copy, upstream, client, False)
            await copy(client, upstream, True)
            tasks.cancel_scope.cancel()

    async def copy(source, target, is_held):
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                data = await source.receive()
                if is_held and held and b"session" in data:
                    await held.pop().wait()
                await target.send(data)

    def hold():
        held.append(anyio.Event())
        return held[0]

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"redis://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}", hold
        tasks.cancel_scope.cancel()


async def test_lock_that_is_taken_after_it_was_released_becomes_free(server, config):
    async with (
        slow_network(server) as (address, hold),
        open_redis(config()) as other,
        open_redis(config(address=address, lost_seconds=3)) as one,
    ):
        assert await one.try_lock("before")
        arrives = hold()
        with anyio.move_on_after(0.05) as scope:
            await one.try_lock("session")
        assert scope.cancelled_caught
        arrives.set()
        locks = f"{{{one.config.prefix}}}:locks"
        with anyio.fail_after(5):
            while server.send("HEXISTS", locks, "session") != b":1\r\n":  # noqa: ASYNC110  another process
                await anyio.sleep(0.01)
        with anyio.fail_after(10):
            while not await other.try_lock("session"):  # noqa: ASYNC110  a store does not tell when a lock is free
                await anyio.sleep(0.05)


async def test_cancelled_attempt_to_take_a_held_lock_leaves_it_to_its_holder(config):
    async with open_redis(config()) as holder, open_redis(config()) as one, open_redis(config()) as other:
        assert await holder.try_lock("session")
        for number in range(30):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cancel_after, scope, number / 20_000)
                    assert not await one.try_lock("session")
            assert not await other.try_lock("session")


async def test_nothing_is_left_of_a_host_that_was_closed_or_ended_a_day_ago(server, config):
    async with open_redis(config()) as killed, open_redis(config()) as store:
        assert await killed.try_lock("session")
        expire(server, store)
        await store.put("a", {})
        async with open_redis(config()):
            assert len(holders(server, store)) == 2
        assert len(holders(server, store)) == 1
        assert server.send("HLEN", f"{{{store.config.prefix}}}:locks") == b":0\r\n"
        with pytest.raises(RedisCutOff):
            await killed.put("a", {})


async def test_lock_is_released_although_the_server_restarts_meanwhile(own_server, config):
    async with open_redis(config(own_server)) as one, open_redis(config(own_server)) as other:
        for name in ("a", "b"):  # the server then knows the scripts
            assert await one.try_lock(name)
            assert not await other.try_lock(name)
        await one.unlock("a")
        own_server.pause()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.unlock, "b")
            await anyio.wait_all_tasks_blocked()
            await to_thread.run_sync(own_server.restart)
        assert await other.try_lock("b")


async def test_lock_that_could_not_be_released_becomes_free_when_the_server_is_back(own_server, config):
    options = {"wait_seconds": 0.1, "lost_seconds": 3}
    async with open_redis(config(own_server, **options)) as one:
        assert await one.try_lock("session")
        await to_thread.run_sync(own_server.kill)
        with pytest.raises(RedisUnreachable):
            await one.unlock("session")
        await to_thread.run_sync(own_server.start)
        async with open_redis(config(own_server)) as other:
            with anyio.fail_after(10):
                while not await other.try_lock("session"):  # noqa: ASYNC110  a store does not tell when a lock is free
                    await anyio.sleep(0.05)
            # The first host lives: it lost the lock, and nothing else.
            await one.put("a", {})
            assert not await one.try_lock("session")


async def test_locks_of_a_closed_store_are_free_at_once(config):
    async with open_redis(config(grace_seconds=60)) as one:
        async with open_redis(config()) as other:
            assert await other.try_lock("session")
        assert await one.try_lock("session")


async def test_connection_is_used_again_after_a_transaction_that_failed(server, config):
    async with open_redis(config(max_connections=1)) as store:
        await store.put("a", {})
        before = connections(server)
        with pytest.raises(ZeroDivisionError):
            await fail_within(store)
        await store.put("a", {})
        assert connections(server) == before


async def fail_within(store):
    async with store.transaction() as transaction:
        await transaction.put("a", {})
        raise ZeroDivisionError


def connections(server):
    lines = server.send("CLIENT", "LIST").decode().splitlines()
    return sorted(line.split()[0] for line in lines if "name=sideband" in line)


async def test_error_of_the_block_is_raised_as_it_is(config):
    with pytest.raises(ZeroDivisionError):
        async with open_redis(config()):
            raise ZeroDivisionError


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_others_do_not_wait_for_a_transaction_that_failed_or_was_cancelled(config):
    async with open_redis(config(transaction_seconds=60)) as one, open_redis(config(wait_seconds=1)) as other:
        with pytest.raises(ZeroDivisionError):
            await fail_within(one)
        assert await other.put("a", {}) == 1
        with anyio.CancelScope() as scope:
            async with one.transaction() as transaction:
                await transaction.put("a", {})
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert await other.put("a", {}) == 2


async def test_transaction_of_a_host_that_stands_still_ends_and_others_go_on(server, config):
    async with open_redis(config(transaction_seconds=0.2)) as slow, open_redis(config()) as other:

        async def stand_still():
            async with slow.transaction() as transaction:
                await transaction.put("a", {"by": "slow"})
                await other.put("a", {"by": "other"})
                await transaction.put("b", {})

        with pytest.raises(TimeoutError, match=r"did nothing for more than 0\.2 s") as caught:
            await stand_still()
        assert caught.value.retryable
        assert [(key, (await other.get(key)).value) for key in await other.keys()] == [("a", {"by": "other"})]


async def test_transaction_that_goes_on_is_not_ended(config):
    async with open_redis(config(transaction_seconds=1)) as store, open_redis(config(wait_seconds=0.05)) as other:
        async with store.transaction() as transaction:
            until = anyio.current_time() + 1.6
            while anyio.current_time() < until:
                await transaction.get("a")
                with pytest.raises(TimeoutError, match="another transaction"):
                    await other.put("a", {"by": "other"})
            await transaction.put("a", {"by": "store"})
        assert (await other.get("a")).value == {"by": "store"}


async def test_host_closes_while_the_server_is_away(own_server, config):
    async with open_redis(config(own_server, wait_seconds=0.2)) as store:
        await store.try_lock("a")
        await to_thread.run_sync(own_server.kill)
        with pytest.raises(RedisUnreachable):
            await store.put("a", {})
    await to_thread.run_sync(own_server.start)
    async with open_redis(config(own_server, lost_seconds=20)) as store:
        expire(own_server, store)
        assert await store.try_lock("a")
