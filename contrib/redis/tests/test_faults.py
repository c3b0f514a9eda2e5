"""A server that is slow, full, read-only, gone or of a newer version: a typed error, and the next call works again."""

import os
import socket
import subprocess
from contextlib import suppress

import anyio
import pytest
from anyio import to_thread
from pydantic import ValidationError
from sideband import StoreError
from sideband_redis import (
    RedisBusy,
    RedisUnreachable,
    RedisUnsupported,
    RedisUnwritable,
    open_redis,
)

from .server import Server, folder_of_server, free_port

pytestmark = pytest.mark.anyio


async def opens(config):
    async with open_redis(config):
        pass


async def until(condition):
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110  another process
            await anyio.sleep(0.01)


async def works(use, *arguments):
    """Return whether a call works, now that the server is as it must be."""
    try:
        await use(*arguments)
    except RedisUnsupported:
        return False
    return True


async def put_and_append(store, key, values):
    async with store.transaction() as transaction:
        await transaction.put(key, {})
        await transaction.append("s", values)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_operations_wait_for_a_server_that_starts_again(own_server, config):
    async with open_redis(config(own_server)) as store:
        await store.put("a", {"n": 1})
        await to_thread.run_sync(own_server.kill)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.put, "b", {"n": 2})
            tasks.start_soon(store.get, "a")
            await to_thread.run_sync(own_server.start)
        assert await store.keys() == ("a", "b")


async def test_server_that_stays_away_is_a_typed_error_and_the_next_call_works(own_server, config):
    async with open_redis(config(own_server, wait_seconds=0.3)) as store:
        await store.put("a", {"n": 1})
        await to_thread.run_sync(own_server.stop)
        for use in (store.get("a"), store.put("a", {"n": 2}), store.append("s", [{}]), store.try_lock("x")):
            with pytest.raises(RedisUnreachable) as caught:
                await use
            assert (caught.value.code, caught.value.retryable) == ("redis.unreachable", True)
            assert "address" in caught.value.hint
        await to_thread.run_sync(own_server.start)
        assert (await store.get("a")).value == {"n": 1}
        assert await store.put("a", {"n": 2}) == 2


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_write_whose_connection_breaks_is_a_typed_error_and_not_repeated_and_a_read_is(own_server, config):
    async with open_redis(config(own_server)) as store:
        await store.put("a", {"n": 1})
        errors, found = [], []

        async def write():
            with pytest.raises(RedisUnreachable, match="may have been made") as caught:
                await store.append("s", [{}])
            errors.append(caught.value)

        async def read():
            found.append((await store.get("a")).value)

        own_server.pause()
        async with anyio.create_task_group() as tasks:
            for use in (write, read):
                tasks.start_soon(use)
                await anyio.wait_all_tasks_blocked()
            await to_thread.run_sync(own_server.restart)
        assert found == [{"n": 1}]
        assert "before you repeat it" in errors[0].hint
        assert len(await store.read("s")) <= 1


async def test_all_that_was_written_survives_crashes_of_the_server(own_server, config):
    async with open_redis(config(own_server)) as store:
        for number in range(20):
            await store.append("s", [{"n": number}], durable=False)
            await put_and_append(store, f"{number:02}", [{"n": number}])
            if number % 5 == 0:
                await to_thread.run_sync(own_server.restart)
        assert [one.value["n"] for one in await store.read("s")] == [n // 2 for n in range(40)]
        assert len(await store.keys()) == 20


async def test_password_comes_from_the_address_or_the_settings_and_is_never_shown(own_server, config):
    own_server.send("CONFIG", "SET", "requirepass", "canary")
    with_password = own_server.address.replace("//", "//default:canary@")
    for options in ({"address": with_password}, {"password": "canary"}):
        await opens(config(own_server, **options))
        assert "canary" not in repr(config(own_server, **options))
    wrong = own_server.address.replace("//", "//default:canary2@")
    for options, hint in ({"address": wrong}, "password"), ({}, "password"), ({"password": "canary3"}, "password"):
        with pytest.raises(RedisUnreachable, match="refuses") as caught:
            await opens(config(own_server, **options))
        assert hint in caught.value.hint
        assert "canary" not in str(caught.value)


async def test_user_of_the_address_is_used_without_a_password_too(own_server, config):
    rights = ("~*", "&*", "+@all")
    own_server.send("ACL", "SETUSER", "open", "on", "nopass", *rights)
    own_server.send("ACL", "SETUSER", "closed", "on", ">canary", *rights)
    async with open_redis(config(own_server, address=own_server.address.replace("//", "//open@"))):
        assert b"user=open" in own_server.send("CLIENT", "LIST")
    with pytest.raises(RedisUnreachable, match="refuses") as caught:
        await opens(config(own_server, address=own_server.address.replace("//", "//closed@")))
    assert "`password`" in caught.value.hint


async def test_password_is_not_shown_by_a_server_that_repeats_it(config):
    with folder_of_server() as folder, Server(folder, rename_command=("AUTH", "")) as server:
        with pytest.raises(RedisUnreachable) as caught:
            await opens(config(server, password="canary"))
        assert "canary" not in str(caught.value) + repr(caught.value.__cause__) + repr(caught.value.__context__)


async def test_port_where_no_server_is_is_a_typed_error(config):
    with pytest.raises(RedisUnreachable, match=r"refused|failed") as caught:
        await opens(config(address="redis://user:canary@127.0.0.1:1", wait_seconds=0.1))
    assert "canary" not in str(caught.value)


async def test_name_that_no_machine_can_have_is_a_typed_error(config):
    for host in ("\xe9..x", "\xe9" * 70):
        with pytest.raises(RedisUnreachable, match="not the name of a machine") as caught:
            await opens(config(address=f"redis://user:canary@{host}"))
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize("content", [None, "no certificates"])
async def test_authorities_that_cannot_be_read_are_a_typed_error(config, tmp_path, content):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RedisUnreachable, match=r"ca\.pem") as caught:
        await opens(config(address="rediss://127.0.0.1:1", ca_file=path))
    assert "ca_file" in caught.value.hint


@pytest.mark.parametrize(
    "address",
    [
        "http://u:canary@host", "redis://", "u:canary@host:6379", "redis://u:canary@[::1/0", "unix://", "redis://h:x/",
        "redis://u:canary@host/one", "redis://u:canary@host?db=1", "redis-sentinel://u:canary@host",
    ],
)  # fmt: skip
def test_invalid_address_is_refused_without_the_password(config, address):
    with pytest.raises(ValidationError, match="expected an address such as") as caught:
        config(address=address)
    assert "canary" not in str(caught.value)


async def test_other_kind_of_server_is_a_typed_error(config):
    async def answer(stream):
        async with stream:
            await stream.receive()
            await stream.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        with pytest.raises(RedisUnreachable, match="not a Redis server"):
            await opens(config(address=f"redis://127.0.0.1:{port}", wait_seconds=0.1))
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_server_that_does_not_answer_is_a_typed_error_and_the_next_call_works(own_server, config):
    async with open_redis(config(own_server, command_seconds=0.5, wait_seconds=2)) as store:
        await store.put("a", {"n": 1})
        own_server.pause()
        try:
            for use in (store.put("a", {"n": 2}), store.get("a")):
                with pytest.raises(RedisBusy, match="did not answer"):
                    await use
        finally:
            own_server.go_on()
        assert await store.put("b", {"n": 2}) == 1


async def test_write_that_was_given_up_is_never_made_later(own_server, config):
    async with open_redis(config(own_server, command_seconds=0.5, wait_seconds=2)) as store:
        await store.put("a", {"n": 1})
        own_server.pause()
        try:
            for use in (store.put("a", {"n": 2}), store.append("s", [{}]), store.try_lock("session")):
                with pytest.raises(RedisBusy):
                    await use
        finally:
            own_server.go_on()
        assert (await store.get("a")).value == {"n": 1}
        assert await store.read("s") == ()
        async with open_redis(config(own_server)) as other:
            assert await other.try_lock("session")


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_answers_are_not_mixed_up_after_cancelled_commands(own_server, config):
    async with open_redis(config(own_server, max_connections=2)) as store:
        for number in range(5):
            await store.put(f"{number}", {"n": number})
        for number in range(5):
            own_server.pause()
            try:
                began = anyio.current_time()
                with anyio.move_on_after(0.02) as scope:
                    await store.get(f"{number}")
                assert scope.cancelled_caught
                assert anyio.current_time() - began < 5
            finally:
                own_server.go_on()
            assert (await store.get(f"{4 - number}")).value == {"n": 4 - number}


async def test_script_of_another_client_that_does_not_end_is_a_typed_error(own_server, config):
    own_server.send("CONFIG", "SET", "busy-reply-threshold", 1)
    async with open_redis(config(own_server)) as store:
        await store.put("a", {})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, own_server.send, "EVAL", "while true do end", 0)
            await until(lambda: own_server.send("PING").startswith(b"-BUSY"))
            with pytest.raises(RedisBusy, match="BUSY") as caught:
                await store.put("a", {})
            assert "SCRIPT KILL" in caught.value.hint
            own_server.send("SCRIPT", "KILL")
        assert await store.put("a", {}) == 2


async def test_all_connections_in_use_is_a_typed_error(own_server, config):
    async with open_redis(config(own_server, max_connections=1, wait_seconds=0.2)) as store:
        await store.get("a")
        own_server.pause()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.get, "a")
                await anyio.wait_all_tasks_blocked()
                with pytest.raises(RedisBusy, match=r"all 1 connections were in use for 0\.2 s") as caught:
                    await store.get("a")
                own_server.go_on()
        finally:
            own_server.go_on()
        assert "max_connections" in caught.value.hint


async def test_too_many_clients_are_a_typed_error(own_server, config):
    async with open_redis(config(own_server, wait_seconds=0.3)) as store:
        with socket.create_connection(("127.0.0.1", own_server.port)):
            own_server.send("CONFIG", "SET", "maxclients", 2)
            with pytest.raises(RedisUnreachable, match="max number of clients") as caught:
                await store.get("a")
            assert "maxclients" in caught.value.hint
        assert await store.get("a") is None


async def test_full_memory_is_a_typed_error_with_nothing_half_written_and_later_writes_succeed(own_server, config):
    value = {"text": "x" * 50_000}
    async with open_redis(config(own_server)) as store:
        await store.put("a", {"n": 1})
        await store.append("s", [value])
        assert await store.try_lock("session")
        own_server.send("CONFIG", "SET", "maxmemory", 1)
        writes = (store.put("a", value), store.put("b", {}), store.append("s", [{}]), put_and_append(store, "b", [{}]))
        for write in writes:
            with pytest.raises(RedisUnwritable, match="OOM") as caught:
                await write
            assert (caught.value.code, "maxmemory" in caught.value.hint) == ("redis.unwritable", True)
        assert (await store.get("a")).value == {"n": 1}
        assert (await store.keys(), len(await store.read("s"))) == (("a",), 1)
        # What makes room works, also on a host that starts now.
        await store.unlock("session")
        async with open_redis(config(own_server)) as started:
            assert await started.delete_stream("s")
        assert await store.delete("a")
        own_server.send("CONFIG", "SET", "maxmemory", 0)
        await put_and_append(store, "b", [value])
        assert await store.keys() == ("b",)


async def test_host_keeps_its_locks_while_the_memory_of_the_server_is_full(own_server, config):
    async with (
        open_redis(config(own_server, lost_seconds=1)) as host,
        open_redis(config(own_server, grace_seconds=0)) as other,
    ):
        assert await host.try_lock("session")
        own_server.send("CONFIG", "SET", "maxmemory", 1)
        await anyio.sleep(1.6)  # longer than a host that shows no sign of life keeps them
        own_server.send("CONFIG", "SET", "maxmemory", 0)
        assert not await other.try_lock("session")


@pytest.fixture
def small_disk():
    """Mount a file system of 1 MiB, and yield its folder."""
    with folder_of_server() as folder:
        command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", str(folder)]
        if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
            assert not os.environ.get("CI"), "CI runs as root where file systems can be mounted"
            pytest.skip("mounting a file system requires root")
        yield folder
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def test_full_disk_is_a_typed_error_with_nothing_half_written_and_later_writes_succeed(config, small_disk):
    value = {"text": os.urandom(40_000).hex()}
    with Server(small_disk) as server:
        async with open_redis(config(server, wait_seconds=0.3, transaction_seconds=0.2)) as store:
            written = 0
            with suppress(RedisUnreachable):
                while written < 100:
                    await put_and_append(store, f"{written:03}", [value, value])
                    written += 1
            with pytest.raises(RedisUnreachable):
                await store.get("000")
            await to_thread.run_sync(server.kill)
            remount = ["mount", "-o", "remount,size=16m", str(small_disk)]
            subprocess.run(remount, check=True)  # noqa: ASYNC221
            await to_thread.run_sync(server.start)
            keys = await store.keys()
            assert len(await store.read("s")) == 2 * len(keys)
            assert 0 < written < 100
            assert written <= len(keys) <= written + 1
            await put_and_append(store, "later", [value, value])


async def test_snapshot_that_failed_is_a_typed_error_and_later_writes_succeed(config):
    with folder_of_server() as folder, Server(folder) as server:
        (folder / "dump.rdb").mkdir()
        async with open_redis(config(server)) as store:
            await store.put("a", {"n": 1})
            server.send("CONFIG", "SET", "save", "3600 1")
            server.send("BGSAVE")
            await until(lambda: b"rdb_last_bgsave_status:err" in server.send("INFO", "persistence"))
            with pytest.raises(RedisUnwritable, match="MISCONF") as caught:
                await put_and_append(store, "a", [{}])
            assert "disk" in caught.value.hint
            assert (await store.get("a")).value == {"n": 1}
            server.send("CONFIG", "SET", "save", "")
            assert await store.put("a", {}) == 2


async def test_replica_is_a_typed_error_and_later_writes_succeed(own_server, config):
    async with open_redis(config(own_server)) as store:
        await store.put("a", {"n": 1})
        own_server.send("REPLICAOF", "127.0.0.1", 1)
        for write in (store.put("a", {"n": 2}), store.append("s", [{}]), put_and_append(store, "a", [{}])):
            with pytest.raises(RedisUnwritable, match="READONLY") as caught:
                await write
            assert "primary" in caught.value.hint
        assert (await store.get("a")).value == {"n": 1}
        with pytest.raises(RedisUnwritable, match=r"is a replica of 127\.0\.0\.1:1"):
            await opens(config(own_server))
        own_server.send("REPLICAOF", "NO", "ONE")
        assert await store.put("a", {"n": 2}) == 2


async def test_data_of_a_newer_version_is_refused_and_not_changed(server, config, prefix):
    async with open_redis(config()) as store:
        await store.put("a", {})
    server.send("SET", f"{{{prefix}}}:format", 99)
    before = server.send("KEYS", f"{{{prefix}}}:*")
    with pytest.raises(RedisUnsupported, match="version 99") as caught:
        await opens(config())
    assert "upgrade" in caught.value.hint
    assert server.send("GET", f"{{{prefix}}}:format") == b"$2\r\n99\r\n"
    assert server.send("KEYS", f"{{{prefix}}}:*") == before


async def test_keys_of_another_program_are_a_typed_error_and_not_changed(server, config, prefix):
    server.send("SET", f"{{{prefix}}}:stream:s", "mine")
    async with open_redis(config()) as store:
        for write in (store.append("s", [{}]), put_and_append(store, "a", [{}])):
            with pytest.raises(Exception, match="WRONGTYPE") as caught:
                await write
            assert "prefix" in caught.value.hint
        assert await store.keys() == ()


async def test_index_of_another_program_is_a_typed_error_and_nothing_is_written(server, config, prefix):
    async with open_redis(config()) as store:
        await store.put("a", {"n": 1})
        server.send("SET", f"{{{prefix}}}:index", "mine")
        for write in (store.put("a", {}), store.put("b", {}), store.delete("a"), put_and_append(store, "b", [{}])):
            with pytest.raises(StoreError, match="WRONGTYPE") as caught:
                await write
            assert "prefix" in caught.value.hint
        assert (await store.get("a")).value == {"n": 1}
        assert await store.get("b") is None
        assert await store.read("s") == ()


async def test_error_of_the_server_does_not_repeat_what_was_sent(config):
    with folder_of_server() as folder, Server(folder, rename_command=("HGET", "")) as server:
        async with open_redis(config(server)) as store:
            with pytest.raises(StoreError, match="unknown command") as caught:
                await store.get("canary")
            assert "canary" not in repr([caught.value, caught.value.__cause__])


async def test_operations_wait_for_a_server_that_loads_its_data(own_server, config):
    async with open_redis(config(own_server)) as store:
        await store.put("a", {})
        # It loads them slowly, and answers after each 1,024.
        own_server.send("EVAL", "for number = 1, 12000 do redis.call('SET', number, 1) end", 0)
        await to_thread.run_sync(own_server.kill)
        own_server.options["key_load_delay"] = 100
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_thread.run_sync, own_server.start)
            tasks.start_soon(store.get, "a")
            assert await store.put("a", {}) == 2


async def test_user_without_rights_gets_a_typed_error_and_nothing_is_written(own_server, config, prefix):
    keys = f"~{{{prefix}}}:*"
    for name, rights in {"none": ["~*"], "other": ["~x", "+@all"], "half": [keys, "+@all", "-zadd"]}.items():
        own_server.send("ACL", "SETUSER", name, "on", ">canary", *rights)
        address = own_server.address.replace("//", f"//{name}:canary@")
        with pytest.raises((RedisUnwritable, RedisUnsupported)) as caught:
            await opens(config(address=address))
        assert "grant" in caught.value.hint
        assert "canary" not in str(caught.value)
    assert own_server.send("DBSIZE") == b":0\r\n"
    own_server.send("ACL", "SETUSER", "enough", "on", ">canary", keys, "+@all", "-@dangerous", "+info", "+config|get")
    async with open_redis(config(address=own_server.address.replace("//", "//enough:canary@"))) as store:
        await put_and_append(store, "a", [{}])
        assert await store.delete("a")


async def test_server_can_be_reached_through_a_socket(config):
    with folder_of_server() as folder, Server(folder, unixsocket=folder / "socket") as server:
        async with open_redis(config(server, address=f"unix://{folder / 'socket'}")) as store:
            assert await store.put("a", {}) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_server_can_be_reached_through_tls_if_its_certificate_is_valid(config):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    with folder_of_server() as folder:
        certificate.private_key_pem.write_to_path(folder / "key")
        certificate.cert_chain_pems[0].write_to_path(folder / "certificate")
        authority.cert_pem.write_to_path(folder / "ca")
        port = free_port()
        files = {"tls_cert_file": folder / "certificate", "tls_key_file": folder / "key"}
        options = {"tls_port": port, "tls_auth_clients": "no", "tls_ca_cert_file": folder / "ca", **files}
        with Server(folder, **options) as server:
            address = f"rediss://127.0.0.1:{port}"
            async with open_redis(config(address=address, ca_file=folder / "ca", max_connections=1)) as store:
                await store.put("a", {"n": 1})
                connections = server.send("CLIENT", "LIST")
                for number in range(2, 5):
                    assert await store.put("a", {"text": "x" * 100_000}) == number
                assert ids(server.send("CLIENT", "LIST")) - ids(connections) == set()
            with pytest.raises(RedisUnreachable, match="certificate"):
                await opens(config(address=address))


def ids(clients):
    return {line.split()[0] for line in clients.splitlines() if b"name=sideband" in line}
