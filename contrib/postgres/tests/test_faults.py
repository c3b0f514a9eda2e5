"""A server that is slow, full, read-only, gone or of a newer version: a typed error, and the next call works again."""

import os
import shutil
import subprocess
from contextlib import contextmanager, suppress

import anyio
import psycopg
import pytest
from anyio import to_thread
from pydantic import ValidationError
from sideband_postgres import PostgresBusy, PostgresUnreachable, PostgresUnsupported, PostgresUnwritable, open_postgres

from .server import folder_of_server

pytestmark = pytest.mark.anyio


@contextmanager
def administration(server):
    with psycopg.connect(server.address, autocommit=True) as connection:
        yield connection


async def put_and_append(store, key, values):
    async with store.transaction() as transaction:
        await transaction.put(key, {})
        await transaction.append("s", values)


async def put_both(store, first, second):
    async with store.transaction() as transaction:
        await transaction.put(*first)
        await transaction.put(*second)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_operations_wait_for_a_server_that_starts_again(own_server, config):
    async with open_postgres(config(own_server)) as store:
        await store.put("a", {"n": 1})
        await to_thread.run_sync(own_server.stop, "immediate")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.put, "b", {"n": 2})
            tasks.start_soon(store.get, "a")
            await to_thread.run_sync(own_server.start)
        assert await store.keys() == ("a", "b")


async def test_server_that_stays_away_is_a_typed_error_and_the_next_call_works(own_server, config):
    async with open_postgres(config(own_server, wait_seconds=0.5)) as store:
        await store.put("a", {"n": 1})
        await to_thread.run_sync(own_server.stop)
        for use in (store.get("a"), store.put("a", {"n": 2}), store.append("s", [{}]), store.try_lock("x")):
            with pytest.raises(PostgresUnreachable) as caught:
                await use
            assert (caught.value.code, caught.value.retryable) == ("postgres.unreachable", True)
            assert "address" in caught.value.hint
        await to_thread.run_sync(own_server.start)
        assert (await store.get("a")).value == {"n": 1}
        assert await store.put("a", {"n": 2}) == 2


async def test_host_closes_while_the_server_is_away(own_server, config):
    async with open_postgres(config(own_server, wait_seconds=0.2)) as store:
        await store.try_lock("a")
        await to_thread.run_sync(own_server.stop, "immediate")
    await to_thread.run_sync(own_server.start)
    async with open_postgres(config(own_server)) as store:
        assert await store.try_lock("a")


@pytest.mark.parametrize(
    ("change", "named"),
    [({"database": "missing"}, "missing"), ({"user": "stranger"}, "stranger"), ({"port": "1"}, "refused")],
    ids=["database", "user", "port"],
)
async def test_address_that_leads_nowhere_is_a_typed_error_without_the_password(server, config, change, named):
    parts = {"user": "postgres", "port": server.port, "database": "postgres", **change}
    address = "postgresql://{user}:canary@127.0.0.1:{port}/{database}".format(**parts)
    with pytest.raises(PostgresUnreachable) as caught:
        async with open_postgres(config(address=address, wait_seconds=0.2)):
            pass
    assert named in caught.value.message
    assert caught.value.hint
    assert "canary" not in str(caught.value) + repr(config(address=address))


def test_invalid_address_is_refused_without_the_password(config):
    with pytest.raises(ValidationError, match="expected a URL such as") as caught:
        config(address="postgresql://user:canary@[::1/database")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_server_that_does_not_answer_is_a_typed_error_and_the_next_call_works(own_server, config):
    options = {"statement_seconds": 0.1, "wait_seconds": 1}
    async with open_postgres(config(own_server, **options)) as store:
        await store.put("a", {"n": 1})
        own_server.pause()
        try:
            with pytest.raises(PostgresBusy, match="did not answer"):
                await store.put("a", {"n": 2})
        finally:
            own_server.go_on()
        assert await store.put("b", {"n": 2}) == 1


async def test_statement_that_is_blocked_ends_at_its_limit_and_writes_nothing(server, config, schema):
    async with open_postgres(config(statement_seconds=0.2)) as store:
        await store.put("a", {"n": 1})
        with administration(server) as connection, connection.transaction():
            connection.execute(f"LOCK TABLE {schema}.documents")
            for use in (store.put("a", {"n": 2}), store.get("a")):
                with pytest.raises(PostgresBusy) as caught:
                    await use
                assert "statement_seconds" in caught.value.hint or "pg_stat_activity" in caught.value.hint
        assert (await store.get("a")).version == 1


async def test_transactions_that_lock_each_other_end_with_a_typed_error_for_one(config):
    both = anyio.Event()
    async with open_postgres(config()) as store:
        failed = []
        for key in ("a", "b"):
            await store.put(key, {})

        async def use(first, second):
            try:
                async with store.transaction() as transaction:
                    await transaction.put(first, {"by": first})
                    if first == "b":
                        both.set()
                    await both.wait()
                    await transaction.put(second, {"by": first})
            except PostgresBusy as error:
                failed.append((first, error.retryable))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(use, "a", "b")
            tasks.start_soon(use, "b", "a")
        ((loser, retryable),) = failed
        winner = {"a": "b", "b": "a"}[loser]
        assert retryable
        assert [(await store.get(key)).value for key in ("a", "b")] == [{"by": winner}] * 2


async def test_all_connections_in_use_is_a_typed_error(config):
    async with (
        open_postgres(config(max_connections=1, wait_seconds=0.2)) as store,
        store.transaction() as transaction,
    ):
        await transaction.put("a", {})
        with pytest.raises(PostgresBusy, match=r"all 1 connections were in use for 0\.2 s"):
            await store.get("a")


async def test_read_only_server_is_a_typed_error_and_later_writes_succeed(own_server, config):
    async with open_postgres(config(own_server)) as store:
        await store.put("a", {"n": 1})
        await to_thread.run_sync(set_read_only, own_server, True)
        with pytest.raises(PostgresUnwritable, match="read-only") as caught:
            await store.put("a", {"n": 2})
        assert "primary" in caught.value.hint
        with pytest.raises(PostgresUnwritable):
            await put_both(store, ("b", {}), ("c", {}))
        assert (await store.get("a")).value == {"n": 1}
        await to_thread.run_sync(set_read_only, own_server, False)
        assert await store.put("a", {"n": 2}) == 2
        assert await store.keys() == ("a",)


def set_read_only(server, value):
    """Set it for sessions that begin later, and end the others."""
    with administration(server) as connection:
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        connection.execute("SELECT pg_reload_conf()")
    server.restart("fast")


@pytest.fixture
def small_disk():
    """Mount a file system of 1 MiB, and yield its folder."""
    with folder_of_server() as folder:
        yield from mounted(folder)


def mounted(mount):
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "tmpfs", str(mount)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        assert not os.environ.get("CI"), "CI runs as root where file systems can be mounted"
        pytest.skip("mounting a file system requires root")
    shutil.chown(mount, "postgres", "postgres")
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


async def test_full_disk_is_a_typed_error_with_nothing_half_written_and_later_writes_succeed(
    own_server, config, schema, small_disk
):
    value = {"text": os.urandom(40_000).hex()}
    async with open_postgres(config(own_server)) as store:
        await store.append("s", [{}])
        with administration(own_server) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
            connection.execute(f"ALTER TABLE {schema}.records SET TABLESPACE small")
        written = 1
        with suppress(PostgresUnwritable):
            while written < 100:
                await store.append("s", [value, value])
                written += 2
        assert len(await store.read("s")) == written < 100
        with pytest.raises(PostgresUnwritable) as caught:
            await put_and_append(store, "a", [value] * 20)
        assert "space" in caught.value.hint
        assert await store.get("a") is None
        subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)  # noqa: ASYNC221
        assert await store.append("s", [value, value]) == written


async def test_tables_of_an_older_version_are_migrated(server, config, schema):
    async with open_postgres(config()) as store:
        await store.put("a", {"n": 1})
    with administration(server) as connection:
        connection.execute(f"ALTER TABLE {schema}.locks DROP COLUMN attempt")
        connection.execute(f"UPDATE {schema}.format SET version = 1")
    async with open_postgres(config()) as store:
        assert (await store.get("a")).value == {"n": 1}
        assert await store.try_lock("session")


async def test_tables_of_a_newer_version_are_refused_and_not_changed(server, config, schema):
    async with open_postgres(config()) as store:
        await store.put("a", {})
    with administration(server) as connection:
        connection.execute(f"UPDATE {schema}.format SET version = 99")
        with pytest.raises(PostgresUnsupported, match="version 99") as caught:
            async with open_postgres(config()):
                pass
        assert "upgrade" in caught.value.hint
        assert connection.execute(f"SELECT version FROM {schema}.format").fetchone() == (99,)


async def test_database_that_is_not_in_utf_8_is_refused(server, config):
    with administration(server) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(PostgresUnsupported, match="LATIN1"):
        async with open_postgres(config(address=server.address.removesuffix("postgres") + "latin")):
            pass


async def test_role_without_rights_gets_a_typed_error(server, config):
    with administration(server) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
    with pytest.raises(PostgresUnwritable, match="permission denied") as caught:
        async with open_postgres(config(address=server.address.replace("postgres@", "reader@"))):
            pass
    assert "grant" in caught.value.hint


async def test_writes_are_on_disk_although_the_server_does_not_sync_by_default(own_server, config):
    with administration(own_server) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_commit = off")
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("SELECT pg_reload_conf()")
    async with open_postgres(config(own_server)) as store:
        for number in range(20):
            await store.append("s", [{"n": number}], durable=False)
        await to_thread.run_sync(own_server.restart, "immediate")
        assert len(await store.read("s")) == 20


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_statement_ends_in_the_server_too(server, config, schema):
    async with open_postgres(config()) as store:
        await store.put("a", {"n": 1})
        with administration(server) as connection, connection.transaction():
            connection.execute(f"LOCK TABLE {schema}.documents")
            with anyio.move_on_after(0.2) as scope:
                await store.put("a", {"n": 2})
            assert scope.cancelled_caught
            assert connection.execute(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass",
                [f"{schema}.documents"],
            ).fetchone() == (0,)
        assert (await store.get("a")).value == {"n": 1}
