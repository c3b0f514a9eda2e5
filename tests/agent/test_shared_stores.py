"""Sessions in a store that hosts with different homes share: each has one writer, on whichever machine."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from sideband import Host, Plugin
from sideband.errors import ReservationRefused, StoreError
from sideband.messages import UserMessage
from sideband.store import Reservations
from sideband_agent.sessions import SessionLocked, Sessions

pytestmark = pytest.mark.anyio

WRITER = """
import sys
from pathlib import Path

import anyio
import shared_store
from sideband import Host, Plugin
from sideband.messages import UserMessage
from sideband_agent.sessions import Sessions


async def main(home):
    plugins = [Plugin("store", "shared", shared_store)]
    async with Host(home=home, plugins=plugins, autoload=False) as host:
        async with await Sessions(host.store, home).create() as session:
            await session.append_message(UserMessage(content="from the other machine"))
            print(session.id, flush=True)
            sys.stdin.read()


anyio.run(main, Path(sys.argv[1]))
"""


@pytest.fixture
async def machines(tmp_path, shared_store):
    """Return the sessions of two hosts with different homes that share a store."""
    plugins = [Plugin("store", "shared", shared_store)]
    async with (
        Host(home=tmp_path / "one", plugins=plugins, autoload=False) as one,
        Host(home=tmp_path / "two", plugins=plugins, autoload=False) as two,
    ):
        yield Sessions(one.store, one.home), Sessions(two.store, two.home)


async def test_plugin_has_one_store_and_its_reservations_on_all_machines(tmp_path, shared_store):
    plugins = [Plugin("store", "shared", shared_store)]
    async with (
        Host(home=tmp_path / "one", plugins=plugins, autoload=False) as one,
        Host(home=tmp_path / "two", plugins=plugins, autoload=False) as two,
    ):
        stores = [host.context_for("gate").store for host in (one, two)]
        await stores[0].put("a", {"n": 1})
        assert (await stores[1].get("a")).value == {"n": 1}
        for store, count in zip(stores, (12, 8), strict=True):
            await Reservations(store).take("visitors", count, of=20, seconds=3_600)
        for store in stores:
            with pytest.raises(ReservationRefused):
                await Reservations(store).take("visitors", of=20, seconds=3_600)


async def test_session_that_is_open_on_one_machine_is_locked_on_the_other_until_it_is_closed(machines):
    one, two = machines
    async with await one.create() as session:
        await session.append_message(UserMessage(content="hello"))
        for sessions in machines:
            for use in (sessions.open, sessions.delete):
                with pytest.raises(SessionLocked) as caught:
                    await use(session.id)
                assert (caught.value.code, caught.value.retryable) == ("session.locked", True)
        assert len((await two.read(session.id)).context().messages) == 1
    async with await two.open(session.id) as session:
        await session.append_message(UserMessage(content="again"))
        with pytest.raises(SessionLocked):
            await one.open(session.id)
    await one.delete(session.id)
    assert await two.list() == ()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_lock_is_released_if_the_session_cannot_be_read(machines, monkeypatch, cancelled):
    one, two = machines
    async with await one.create() as session:
        pass
    read = one._records.store.read

    async def fail(stream, *, limit=None):
        if limit is None and not cancelled:
            raise StoreError("no connection")
        if limit is None:
            scope.cancel()
        return await read(stream, limit=limit)

    async def unlock(name):
        await anyio.lowlevel.checkpoint()
        await release(name)

    release = one._records.store.unlock
    monkeypatch.setattr(one._records.store, "unlock", unlock)
    monkeypatch.setattr(one._records.store, "read", fail)
    with suppress(StoreError), anyio.CancelScope() as scope:
        await one.open(session.id)
    async with await two.open(session.id):
        pass


async def test_session_closes_if_its_lock_cannot_be_released(machines):
    one, _ = machines

    async def fail(name):
        raise StoreError("no connection")

    session = await one.create()
    one._records.store.unlock = fail
    await session.aclose()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_lock_is_released_when_the_machine_of_its_holder_dies(machines, tmp_path):
    _, two = machines
    command = [sys.executable, "-c", WRITER, tmp_path / "three"]
    folder = Path(__file__).parents[1]
    with subprocess.Popen(  # noqa: ASYNC220
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(folder)}
    ) as writer:
        try:
            session = (await anyio.to_thread.run_sync(writer.stdout.readline)).strip()
            with pytest.raises(SessionLocked):
                await two.open(session)
        finally:
            writer.kill()
    async with await two.open(session) as opened:
        assert [message.text for message in opened.messages()] == ["from the other machine"]
