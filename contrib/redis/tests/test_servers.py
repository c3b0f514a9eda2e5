"""Servers that may lose what they confirm: they are refused, unless that is accepted."""

from contextlib import suppress

import anyio
import pytest
from anyio import to_thread
from sideband import StoreError
from sideband_redis import RedisUnconfirmed, RedisUnreachable, RedisUnsupported, open_redis

from .server import Server, folder_of_server, free_port
from .test_faults import opens, put_and_append, until, works

pytestmark = pytest.mark.anyio


UNSAFE = [
    ("appendonly", "no", "appendonly yes"),
    ("appendfsync", "everysec", "appendfsync always"),
    ("no-appendfsync-on-rewrite", "yes", "no-appendfsync-on-rewrite no"),
    ("maxmemory-policy", "allkeys-lru", "maxmemory-policy noeviction"),
]


@pytest.mark.parametrize(("name", "value", "remedy"), UNSAFE, ids=[one[0] for one in UNSAFE])
async def test_server_that_may_lose_what_it_confirms_is_refused(own_server, config, name, value, remedy):
    before = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
    own_server.send("CONFIG", "SET", "maxmemory", "1gb")
    async with open_redis(config(own_server, lost_seconds=0.2)) as store:
        await store.put("a", {})
        own_server.send("CONFIG", "SET", name, value)
        with pytest.raises(RedisUnsupported, match=f"`{name} {value}`") as caught:
            await opens(config(own_server))
        assert f"set `{remedy}` in redis.conf, and run CONFIG SET {remedy}" in caught.value.hint
        # A host that runs notices it too, and goes on when it is right again.
        with anyio.fail_after(10):
            while await works(store.get, "a"):  # noqa: ASYNC110  another process
                await anyio.sleep(0.02)
        with pytest.raises(RedisUnsupported, match=f"`{name} {value}`"):
            await store.put("a", {})
        own_server.send("CONFIG", "SET", name, before.get(name, "noeviction"))
        with anyio.fail_after(10):
            while not await works(store.put, "a", {}):  # noqa: ASYNC110  another process
                await anyio.sleep(0.02)


async def test_server_that_only_begins_to_keep_a_log_is_used_when_it_has_one(config):
    with folder_of_server() as folder, Server(folder, appendonly="no") as server:
        server.send("SET", "other", "data")
        server.send("CONFIG", "SET", "rdb-key-save-delay", 2_000_000)
        server.send("CONFIG", "SET", "appendonly", "yes")
        with pytest.raises(RedisUnreachable, match="append-only file") as caught:
            await opens(config(server, wait_seconds=0.2))
        assert "aof_rewrite_in_progress:0" in caught.value.hint
        async with open_redis(config(server)) as store:
            await store.put("a", {})
            server.options["appendonly"] = "yes"
            await to_thread.run_sync(server.restart)
            assert (await store.get("a")).version == 1


async def test_server_that_could_evict_and_has_no_limit_of_memory_is_accepted(own_server, config):
    own_server.send("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    await opens(config(own_server))


async def test_old_server_is_refused(config):
    answers = {
        b"CLIENT": b"+OK\r\n",
        b"TIME": b"*2\r\n$1\r\n1\r\n$1\r\n1\r\n",
        b"INFO": b"$36\r\nexecutable:/\xff\r\nredis_version:6.2.14\n\r\n",
        b"CONFIG": b"*0\r\n",
    }

    async def answer(stream):
        async with stream:
            with suppress(anyio.EndOfStream):
                while True:
                    sent = (await stream.receive()).split(b"\r\n")
                    await stream.send(b"".join(answers[word] for word in sent if word in answers))

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        with pytest.raises(RedisUnsupported, match=r"version 6\.2\.14") as caught:
            await opens(config(address=f"redis://127.0.0.1:{port}"))
        assert "7.0" in caught.value.hint
        tasks.cancel_scope.cancel()


async def test_node_of_a_cluster_is_refused(config):
    with folder_of_server() as folder, Server(folder, cluster_enabled="yes", cluster_port=free_port()) as server:
        with pytest.raises(RedisUnsupported, match="`cluster-enabled yes`") as caught:
            await opens(config(server))
        assert "cluster-enabled no" in caught.value.hint


async def test_server_whose_settings_cannot_be_read_is_refused_unless_it_is_trusted(config):
    with folder_of_server() as folder, Server(folder, rename_command=("CONFIG", "")) as server:
        with pytest.raises(RedisUnsupported, match="cannot be read") as caught:
            await opens(config(server))
        assert "trust_server" in caught.value.hint
        async with open_redis(config(server, trust_server=True)) as store:
            assert await store.put("a", {}) == 1


async def test_server_that_tells_nothing_is_refused_unless_it_is_trusted(config):
    without = ("INFO", "", "--rename-command", "CONFIG", "")
    with folder_of_server() as folder, Server(folder, rename_command=without) as server:
        with pytest.raises(StoreError, match="unknown command"):
            await opens(config(server))
        await opens(config(server, trust_server=True))


@pytest.fixture
def replica(own_server):
    """A replica of the server."""
    with folder_of_server() as folder, Server(folder, repl_diskless_sync_delay=0) as running:
        own_server.send("CONFIG", "SET", "repl-diskless-sync-delay", 0)
        running.send("REPLICAOF", "127.0.0.1", own_server.port)
        yield running


async def wait_for_replica(server, replica):
    """Wait until the replica has everything in its log, also what it has got at first."""
    await until(lambda: b"state=online" in server.send("INFO", "replication"))
    busy = (b"aof_rewrite_in_progress:1", b"aof_rewrite_scheduled:1")
    await until(lambda: not any(one in replica.send("INFO", "persistence") for one in busy))


async def test_server_with_replicas_is_refused_unless_they_confirm_or_a_loss_is_accepted(own_server, replica, config):
    await wait_for_replica(own_server, replica)
    with pytest.raises(RedisUnsupported, match="failover") as caught:
        await opens(config(own_server))
    assert "failover_may_lose_writes" in caught.value.hint
    await opens(config(own_server, failover_may_lose_writes=True))
    await opens(config(own_server, replicas=1))


async def test_write_that_too_few_replicas_confirm_is_a_typed_error_and_later_writes_succeed(
    own_server, replica, config
):
    await wait_for_replica(own_server, replica)
    async with open_redis(config(own_server, replicas=1, command_seconds=3)) as store:
        await store.put("a", {"n": 1})
        await put_and_append(store, "b", [{}])
        replica.pause()
        try:
            with pytest.raises(RedisUnconfirmed, match="0 of 1 replicas") as caught:
                await store.put("a", {"n": 2})
        finally:
            replica.go_on()
        assert "write was made" in caught.value.message
        assert (await store.get("a")).value == {"n": 2}
        assert await store.put("a", {"n": 3}) == 3
        found = replica.send("HGET", f"{{{store.config.prefix}}}:documents", "a")
        assert found.endswith(b'3:{"n":3}\r\n')


async def test_host_that_a_failover_leads_to_another_server_goes_on_if_that_has_its_data(own_server, replica, config):
    await wait_for_replica(own_server, replica)
    async with open_redis(config(own_server, replicas=1, wait_seconds=0.2)) as store:
        await store.put("a", {"n": 1})
        assert await store.try_lock("session")
        await to_thread.run_sync(own_server.kill)
        replica.send("REPLICAOF", "NO", "ONE")
        async with open_redis(config(replica)) as other:
            assert (await other.get("a")).value == {"n": 1}
            assert not await other.try_lock("session")
