"""Durability of acknowledged entries when a process is killed, and exclusive writing by one process."""

import fcntl
import os
import subprocess
import sys

import anyio
import pytest
from sideband import StoreError
from sideband.messages import UserMessage
from sideband_agent.sessions import CustomEntry, MessageEntry, SessionLocked, Sessions
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

WRITER = """
import sys
import anyio
from pathlib import Path
from sideband_agent.sessions import MessageEntry, Sessions
from sideband.messages import UserMessage
from sideband_store_sqlite import open_sqlite

async def main(folder, name):
    async with open_sqlite(Path(folder) / "store") as store:
        sessions = Sessions(store, Path(folder))
        session = await sessions.create(name=name) if name else await sessions.open(name)
        print(session.id, flush=True)
        number = 0
        while True:
            number += 1
            texts = [MessageEntry(message=UserMessage(content=f"{number}.{part}")) for part in range(2)]
            await session.append(*texts)
            print(number, flush=True)

anyio.run(main, *sys.argv[1:])
"""


@pytest.fixture
def start_writer(tmp_path):
    """Start a process that creates a session and appends two entries at a time until it is killed."""
    started = []

    def start(name, *prefix):
        process = subprocess.Popen(
            [*prefix, sys.executable, "-c", WRITER, str(tmp_path), name],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


def texts(session):
    return [message.text for message in session.messages()]


async def test_acknowledged_entries_survive_a_kill(sessions, start_writer):
    process = start_writer("killed")
    for _ in range(6):
        line = await anyio.to_thread.run_sync(process.stdout.readline)
    process.kill()
    rest = await anyio.to_thread.run_sync(process.stdout.read)
    await anyio.to_thread.run_sync(process.wait)
    acknowledged = int((rest.splitlines() or [line])[-1])
    async with await sessions.open("killed") as session:
        appended = len(texts(session)) // 2
        assert appended in {acknowledged, acknowledged + 1}
        # an append is atomic
        assert texts(session) == [f"{number}.{part}" for number in range(1, appended + 1) for part in range(2)]
        assert session.notices == ()
        await session.append(MessageEntry(message=UserMessage(content="after")))
    async with await sessions.open("killed") as session:
        assert texts(session)[-1] == "after"
    assert (await sessions.list())[0].messages == 2 * appended + 1


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_session_is_written_by_one_process_only(sessions, start_writer):
    process = start_writer("busy")
    session = (await anyio.to_thread.run_sync(process.stdout.readline)).strip()
    await anyio.to_thread.run_sync(process.stdout.readline)
    with pytest.raises(SessionLocked, match=str(process.pid)):
        await sessions.open(session)
    with pytest.raises(SessionLocked):
        await sessions.delete(session)
    assert len((await sessions.read(session)).entries) > 0
    process.kill()
    await anyio.to_thread.run_sync(process.wait)
    async with await sessions.open(session):
        pass


async def test_process_of_another_container_is_not_named_because_its_id_means_another_one_here(sessions, start_writer):
    users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    process = start_writer("inside", "unshare", *users, "--pid", "--fork", "--kill-child", "--mount-proc")
    session = (await anyio.to_thread.run_sync(process.stdout.readline)).strip()
    with pytest.raises(SessionLocked, match="another agent"):
        await sessions.open(session)
    process.kill()
    await anyio.to_thread.run_sync(process.wait)


async def test_released_lock_leaves_no_file(sessions, tmp_path):
    async with await sessions.create() as session:
        assert [path.name for path in (tmp_path / "sessions" / "locks").iterdir()] == [session.id]
    assert list((tmp_path / "sessions" / "locks").iterdir()) == []


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_lock_file_removed_by_its_holder_is_not_used(sessions, monkeypatch, tmp_path):
    async with await sessions.create() as session:
        pass
    name = tmp_path / "sessions" / "locks" / session.id
    real, removed = fcntl.flock, []

    def flock(descriptor, operation):
        if not removed:
            removed.append(name.unlink())
        return real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    async with await sessions.open(session.id):
        assert removed
        with pytest.raises(SessionLocked):
            await sessions.open(session.id)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_concurrent_appends_form_one_path(sessions):
    async with await sessions.create() as session:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(session.append_custom, "n", {"n": number})
        path = session.path()
        assert len(path) == 20
    async with await sessions.open(session.id) as again:
        assert again.path() == path
        assert again.notices == ()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_append_is_atomic_and_the_next_one_follows_it(sessions):
    async with await sessions.create() as session:
        for number in range(30):
            with anyio.move_on_after(0.0001 * number):
                await session.append(CustomEntry(kind="a", data=number), CustomEntry(kind="b", data=number))
        await session.append_custom("last", {})
        path = session.path()
        kinds = [entry.kind for entry in path]
        assert kinds == ["a", "b"] * (len(path) // 2) + ["last"]
    async with await sessions.open(session.id) as again:
        assert again.path() == path
        assert len(again.tree.entries) == len(path)


async def test_failed_append_changes_nothing(sessions, store):
    async with await sessions.create() as session:
        await session.append_custom("a", {})
        store.connection.database.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError):
            await session.append_custom("b", {})
        assert len(session.path()) == 1
        store.connection.database.execute("PRAGMA query_only = OFF")
        await session.append_custom("c", {})
    async with await sessions.open(session.id) as again:
        assert [entry.kind for entry in again.path()] == ["a", "c"]


async def test_entry_stored_by_a_failed_append_is_found_by_the_next(sessions, store):
    """A disk may report an error after it has written, so the session reads the store again."""
    async with await sessions.create() as session:
        await session.append_custom("a", {})
        session._uncertain = True
        entry = {"id": "f" * 16, "parent": session.leaf, "time": "", "type": "custom", "kind": "b"}
        await store.append(f"session/{session.id}", [entry])
        await session.append_custom("c", {})
        assert [entry.kind for entry in session.path()] == ["a", "b", "c"]
    assert (await sessions.list()) == ()
    assert (await sessions.read(session.id)).path()[-1].kind == "c"


async def test_failed_creation_leaves_no_lock(sessions, store, tmp_path):
    store.connection.database.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreError):
        await sessions.create()
    store.connection.database.execute("PRAGMA query_only = OFF")
    assert list((tmp_path / "sessions" / "locks").iterdir()) == []


async def test_session_with_a_closed_store_releases_its_lock(tmp_path):
    async with open_sqlite(tmp_path / "store") as store:
        session = await Sessions(store, tmp_path).create()
    await session.aclose()
    async with open_sqlite(tmp_path / "store") as store, await Sessions(store, tmp_path).open(session.id):
        pass


@pytest.fixture
def counted(store, tmp_path):
    """Sessions in a store that counts the records read from it."""
    read = []

    class Counting:
        def __getattr__(self, name):
            return getattr(store, name)

        async def read(self, *arguments, **options):
            found = await store.read(*arguments, **options)
            read.append(len(found))
            return found

    return Sessions(Counting(), tmp_path), read


async def test_append_does_not_read_the_session_again(counted):
    sessions, read = counted
    async with await sessions.create() as session:
        for number in range(300):
            await session.append_custom("n", {"n": number})
            session.messages()
    assert sum(read) == 0


async def test_list_reads_few_records_of_an_open_session_and_none_of_others(counted):
    sessions, read = counted
    async with await sessions.create(name="n") as session:
        for number in range(300):
            await session.append_custom("n", {"n": number})
        assert (await sessions.list())[0].entries == 301
        assert 0 < sum(read) <= 256
    read.clear()
    assert (await sessions.list())[0].entries == 301
    assert sum(read) == 0
