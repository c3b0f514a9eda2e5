"""Locks of hosts that share a store, and what a host that has lost them may still do: nothing."""

import anyio
import psycopg
import pytest
from anyio import to_thread
from sideband_postgres import PostgresCutOff, PostgresUnreachable, open_postgres

pytestmark = pytest.mark.anyio


def refuse_connections(server, refused):
    """Let no role but that of the test connect."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"ALTER ROLE host {'NOLOGIN' if refused else 'LOGIN'}")


@pytest.fixture
def cut(own_server, config):
    """A configuration with the role ``host``, which can be kept from connecting."""
    with psycopg.connect(own_server.address, autocommit=True) as connection:
        connection.execute("CREATE ROLE host LOGIN")
        connection.execute("GRANT CREATE ON DATABASE postgres TO host")
    return config(address=own_server.address.replace("postgres@", "host@"), wait_seconds=1)


@pytest.fixture
async def other(own_server, config, cut):
    """A store of another machine, whose connections go on."""
    async with open_postgres(cut):  # the role `host` owns the tables
        pass
    with psycopg.connect(own_server.address, autocommit=True) as connection:
        connection.execute("GRANT host TO postgres")
    async with open_postgres(config(own_server, grace_seconds=0.2)) as store:
        yield store


def end_connections(server):
    """End the connections of the role ``host``, as a network that fails does."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'host'")


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_host_that_has_lost_its_locks_cannot_write_and_others_can(own_server, cut, other):
    async with open_postgres(cut) as lost:
        assert await lost.try_lock("session")
        await lost.put("a", {"by": "lost"})
        await to_thread.run_sync(refuse_connections, own_server, True)
        await to_thread.run_sync(end_connections, own_server)
        assert await other.try_lock("session")
        await other.put("a", {"by": "other"})
        await to_thread.run_sync(refuse_connections, own_server, False)
        for write in (lost.put("a", {"by": "lost"}), lost.append("s", [{}]), lost.delete("a"), lost.try_lock("new")):
            with pytest.raises(PostgresCutOff) as caught:
                await write
            assert (caught.value.code, caught.value.retryable) == ("postgres.cut_off", False)
        with pytest.raises(PostgresCutOff):
            async with lost.transaction() as transaction:
                await transaction.put("a", {"by": "lost"})
    assert (await other.get("a")).value == {"by": "other"}
    assert await other.read("s") == ()
    assert not await other.try_lock("session")


async def test_host_keeps_its_locks_if_it_connects_again_in_time(own_server, cut, other):
    async with open_postgres(cut) as host:
        assert await host.try_lock("session")
        await to_thread.run_sync(end_connections, own_server)
        assert not await other.try_lock("session")
        await host.put("a", {})


async def test_transaction_that_is_open_while_others_want_the_lock_is_that_of_a_living_host(own_server, cut, other):
    async with open_postgres(cut) as host:
        assert await host.try_lock("session")
        async with host.transaction() as transaction:
            await transaction.put("a", {})
            assert not await other.try_lock("session")
    assert await other.get("a") is not None


async def test_idle_host_keeps_its_locks_through_a_crash_of_the_server(own_server, config):
    async with (
        open_postgres(config(own_server, grace_seconds=5)) as host,
        open_postgres(config(own_server, grace_seconds=5)) as other,
    ):
        assert await host.try_lock("session")
        for mode in ("immediate", "fast"):
            await to_thread.run_sync(own_server.restart, mode)
            assert not await other.try_lock("session")
        await host.unlock("session")
        assert await other.try_lock("session")


@pytest.fixture
async def interrupted(own_server, config):
    """A host whose lock `session` could not be released, because the server was away. It is back."""
    async with open_postgres(config(own_server, wait_seconds=0.2, statement_seconds=1, grace_seconds=60)) as host:
        assert await host.try_lock("session")
        await to_thread.run_sync(own_server.stop)
        with pytest.raises(PostgresUnreachable):
            await host.unlock("session")
        await to_thread.run_sync(own_server.start)
        yield host


async def test_lock_that_could_not_be_released_is_released_when_the_server_is_back(own_server, config, interrupted):
    async with open_postgres(config(own_server, grace_seconds=60)) as other:
        with anyio.fail_after(30):
            while not await other.try_lock("session"):  # noqa: ASYNC110  a store does not tell when a lock is free
                await anyio.sleep(0.05)
    await interrupted.put("a", {})


async def test_late_release_does_not_end_a_lock_that_was_taken_again(own_server, config, interrupted):
    assert await interrupted.try_lock("session")
    async with open_postgres(config(own_server)) as other:
        for _ in range(40):  # longer than releases are repeated
            assert not await other.try_lock("session")
            await anyio.sleep(0.1)
        await interrupted.unlock("session")
        assert await other.try_lock("session")


async def test_store_that_does_not_hold_a_lock_does_not_release_it(config):
    async with open_postgres(config()) as one, open_postgres(config()) as other:
        assert await one.try_lock("session")
        assert not await one.try_lock("session")
        await other.unlock("session")
        assert not await other.try_lock("session")


async def test_cancelled_lock_is_not_held(config):
    async with open_postgres(config()) as one, open_postgres(config()) as other:
        for number in range(60):
            taken = False
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cancel_after, scope, number / 10_000)
                    taken = await one.try_lock(f"{number}")
            assert scope.cancelled_caught or taken
            assert await other.try_lock(f"{number}") != taken


async def cancel_after(scope, seconds):
    await anyio.sleep(seconds)  # to cancel at each of the places where it waits for the server
    scope.cancel()


async def test_locks_of_a_closed_store_are_free_at_once(config):
    async with open_postgres(config(grace_seconds=60)) as one:
        async with open_postgres(config()) as other:
            assert await other.try_lock("session")
        assert await one.try_lock("session")


async def test_connection_is_used_again_after_a_transaction_that_failed(server, config):
    async with open_postgres(config(max_connections=1)) as store:
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
    with psycopg.connect(server.address, autocommit=True) as connection:
        return connection.execute(
            "SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity WHERE application_name = 'sideband'"
        ).fetchone()


async def test_error_of_the_block_is_raised_as_it_is(config):
    with pytest.raises(ZeroDivisionError):
        async with open_postgres(config()):
            raise ZeroDivisionError
