"""Cancellation, crashes, sharing, damage, foreign files and full disks: data stays intact and errors are typed."""

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from sideband import StoreError
from sideband_store_sqlite import StoreBusy, StoreDamaged, StoreForeign, StoreUnwritable, open_sqlite
from sideband_store_sqlite._connection import TransactionState
from sideband_store_sqlite._statements import put_document

pytestmark = pytest.mark.anyio

WRITER = """
import sys, anyio
from pathlib import Path
from sideband_store_sqlite import open_sqlite

async def main(folder, name, count):
    async with open_sqlite(Path(folder)) as store:
        print("ready", flush=True)
        for n in range(int(count)):
            async with store.transaction() as transaction:
                await transaction.append("shared", [{"by": name, "n": n}])
                await transaction.put(name, {"n": n})
            print(n, flush=True)

anyio.run(main, *sys.argv[1:])
"""
CREATE = """
import sys
from pathlib import Path
from sideband_store_sqlite._schema import connect

connect(Path(sys.argv[1]) / "store.sqlite", 0)
"""
HOLDER = """
import sys, anyio
from pathlib import Path
from sideband_store_sqlite import open_sqlite

async def main(folder):
    async with open_sqlite(Path(folder)) as store, store.transaction() as transaction:
        await transaction.put("held", {})
        print("held", flush=True)
        sys.stdin.readline()
        await transaction.put("held", {"n": 2})

anyio.run(main, sys.argv[1])
"""


def start(program, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
        **options,
    )


async def put_both(store, first, second):
    async with store.transaction() as transaction:
        await transaction.put(*first)
        await transaction.put(*second)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize("at_its_end", [False, True])
async def test_cancelled_transaction_is_rolled_back_and_releases_its_lock(store, tmp_path, at_its_end):
    with anyio.CancelScope() as scope:
        async with store.transaction() as transaction:
            await transaction.put("a", {})
            scope.cancel()
            if not at_its_end:
                await transaction.put("b", {})
    assert scope.cancelled_caught
    async with open_sqlite(tmp_path, busy_timeout=0.05) as other:
        assert await other.keys() == ()
        assert await other.put("a", {}) == 1


@pytest.mark.parametrize("after", range(8))
async def test_cancelled_asyncio_task_leaves_no_partial_transaction(store, after):
    task = asyncio.create_task(put_both(store, ("a", {}), ("b", {})))
    for _ in range(after):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert await store.keys() in {(), ("a", "b")}
    await store.put("c", {})
    assert "c" in await store.keys()


async def test_thread_that_begins_a_transaction_too_late_does_not_begin_it(store):
    state = TransactionState()
    store.connection.end(None, state)
    store.connection.begin(None, state)
    assert not store.connection.database.in_transaction


async def test_thread_that_comes_too_late_does_not_write_in_the_next_transaction(store):
    ended = TransactionState()
    store.connection.begin(None, ended)
    store.connection.end(None, ended)
    async with store.transaction() as transaction:
        with pytest.raises(StoreError, match="ended"):
            store.connection.within(None, ended, put_document, "a", {}, None)
        await transaction.put("b", {})
    assert await store.keys() == ("b",)


async def test_transaction_that_sqlite_has_rolled_back_is_unusable(store):
    with pytest.raises(StoreError, match="ended"):  # noqa: PT012  the end of the block raises
        async with store.transaction() as transaction:
            await transaction.put("a", {})
            store.connection.database.execute("ROLLBACK")  # as SQLite does on a full disk
            await transaction.put("b", {})
    assert await store.keys() == ()


async def test_failed_statement_ends_its_transaction(store):
    await store.put("damaged", {})
    store.connection.database.execute("UPDATE documents SET value = '{'")
    with pytest.raises(StoreError, match="ended"):  # noqa: PT012  the end of the block raises
        async with store.transaction() as transaction:
            await transaction.put("a", {})
            with pytest.raises(StoreDamaged):
                await transaction.get("damaged")
    assert await store.keys() == ("damaged",)


async def test_file_and_folder_are_private(tmp_path):
    old = os.umask(0)
    try:
        async with open_sqlite(tmp_path / "new") as store:
            await store.put("a", {})
            modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "new").iterdir()}
    finally:
        os.umask(old)
    assert set(modes) >= {"store.sqlite", "store.sqlite-wal"}
    assert set(modes.values()) == {0o600}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


async def test_store_that_is_a_link_is_rejected(tmp_path):
    (tmp_path / "store.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnwritable):
        async with open_sqlite(tmp_path):
            pass
    assert not (tmp_path / "elsewhere").exists()


async def test_file_of_a_newer_version_is_rejected_unchanged(tmp_path):
    async with open_sqlite(tmp_path):
        pass
    with sqlite3.connect(tmp_path / "store.sqlite") as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    before = (tmp_path / "store.sqlite").read_bytes()
    with pytest.raises(StoreForeign, match="format 2") as caught:
        async with open_sqlite(tmp_path):
            pass
    assert "upgrade" in caught.value.hint
    assert (tmp_path / "store.sqlite").read_bytes() == before


async def test_database_of_another_program_is_rejected(tmp_path):
    with sqlite3.connect(tmp_path / "store.sqlite") as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    with pytest.raises(StoreForeign, match="another program"):
        async with open_sqlite(tmp_path):
            pass


async def test_file_that_is_not_a_database_is_damaged(tmp_path):
    (tmp_path / "store.sqlite").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreDamaged) as caught:
        async with open_sqlite(tmp_path):
            pass
    assert caught.value.code == "store.damaged"
    assert caught.value.hint


async def test_damaged_page_is_reported_when_it_is_read(tmp_path):
    async with open_sqlite(tmp_path) as store:
        await store.append("s", [{"text": "x" * 1000} for _ in range(100)])
    path = tmp_path / "store.sqlite"
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    async with open_sqlite(tmp_path) as store:
        with pytest.raises(StoreDamaged):
            await store.read("s")


async def test_concurrent_processes_lose_nothing(tmp_path):
    writers = [start(WRITER, tmp_path, name, 50) for name in ("one", "two")]
    assert [writer.communicate(timeout=60)[0].split()[-1] for writer in writers] == ["49", "49"]
    async with open_sqlite(tmp_path) as store:
        records = await store.read("shared")
    assert [record.position for record in records] == list(range(100))
    for name in ("one", "two"):
        assert [record.value["n"] for record in records if record.value["by"] == name] == list(range(50))


async def test_store_that_another_process_creates_meanwhile_is_not_foreign(tmp_path, monkeypatch):
    connect = sqlite3.connect

    class Interrupted(sqlite3.Connection):
        """Lets another process create the tables after the first look at the file."""

        def execute(self, statement, *parameters):
            if statement == "PRAGMA user_version" and not created:
                creation = subprocess.run([sys.executable, "-c", CREATE, tmp_path], stderr=subprocess.PIPE, check=False)
                created.append(creation.returncode == 0)
            return super().execute(statement, *parameters)

    created = []
    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Interrupted))
    async with open_sqlite(tmp_path) as store:
        await store.append("s", [{}])
    assert created == [False]  # it has to wait for the transaction that reads the format


@pytest.mark.parametrize("kill_after", [0, 1, 7, 23])
async def test_killed_process_leaves_no_partial_transaction(tmp_path, kill_after):
    with start(WRITER, tmp_path, "one", 100_000) as writer:
        assert writer.stdout.readline() == "ready\n"
        for _ in range(kill_after):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        committed = [int(line) for line in writer.stdout]
    async with open_sqlite(tmp_path) as store:
        records = await store.read("shared")
        document = await store.get("one")
    assert len(records) >= max(committed, default=kill_after - 1) + 1
    assert (document.value["n"] if document else -1) == len(records) - 1


async def test_process_killed_inside_a_transaction_releases_its_lock(tmp_path):
    with start(HOLDER, tmp_path) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
    async with open_sqlite(tmp_path) as store:
        assert await store.put("held", {}, version=0) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_wait_for_another_process_times_out_and_can_be_cancelled(tmp_path):
    with start(HOLDER, tmp_path) as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            async with open_sqlite(tmp_path, busy_timeout=0.05) as store:
                with pytest.raises(StoreBusy) as caught:
                    await store.put("mine", {})
                assert caught.value.retryable
                assert await store.get("held") is None
            async with open_sqlite(tmp_path) as store:
                with anyio.move_on_after(0.05) as scope:
                    await store.put("mine", {})
                assert scope.cancelled_caught
                holder.stdin.write("\n")
                holder.stdin.flush()
                assert await store.put("mine", {}, version=0) == 1
                assert (await store.get("held")).version == 2
        finally:
            holder.kill()


async def test_full_disk_is_a_typed_error_and_later_writes_succeed(tmp_path):
    async with open_sqlite(tmp_path) as store:
        await store.put("a", {"text": "x"})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
        try:
            with pytest.raises(StoreUnwritable):
                await store.put("b", {"text": "x" * 200_000})
            with pytest.raises(StoreUnwritable):
                await put_both(store, ("c", {}), ("d", {"text": "x" * 200_000}))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await store.put("e", {"text": "x" * 200_000})
        assert await store.keys() == ("a", "e")


async def append_forever(store, written):
    while True:
        await store.append("s", [{"n": len(written)}], durable=False)
        written.append(len(written))


async def test_short_write_on_a_full_disk_is_a_typed_error_and_later_writes_succeed(tmp_path):
    written = []
    async with open_sqlite(tmp_path) as store:
        await store.put("a", {})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, hard))
        try:
            with pytest.raises(StoreUnwritable):
                await append_forever(store, written)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert await store.append("s", [{"n": len(written)}]) == len(written)
        assert [record.value["n"] for record in await store.read("s")] == [*written, len(written)]


def descriptors_of(path):
    """Return this process's descriptors of a file, the newest first."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink() and link.readlink() == path]
    return sorted((int(link.name) for link in links), reverse=True)


@pytest.fixture
async def unsyncable(tmp_path):
    """Yield a store whose last sync failed, and which could sync again."""
    with pytest.raises(StoreUnwritable):  # noqa: PT012  closing reports it too
        async with open_sqlite(tmp_path) as store:
            await store.put("a", {})
            log = descriptors_of(tmp_path / "store.sqlite-wal")[0]
            real, (unused, pipe) = os.dup(log), os.pipe()
            os.dup2(pipe, log)  # a pipe cannot be synced
            with pytest.raises(StoreUnwritable, match="could not be synced"):
                await store.put("b", {})
            os.dup2(real, log)
            for descriptor in (real, unused, pipe):
                os.close(descriptor)
            yield store


async def test_failed_sync_is_not_tried_again(unsyncable):
    # the system may have dropped what it could not write, so that the next sync would succeed
    for operation in (unsyncable.sync(), unsyncable.put("c", {}), unsyncable.append("s", [{}])):
        with pytest.raises(StoreUnwritable, match="could not be synced"):
            await operation


async def test_writes_remain_visible_after_a_failed_sync(unsyncable):
    assert await unsyncable.put("d", {}, durable=False) == 1
    assert await unsyncable.keys() == ("a", "b", "d")


async def test_writes_that_are_not_durable_succeed_after_a_failed_sync_however_many(unsyncable, tmp_path):
    """The log is not moved into the database: SQLite would sync it again first."""
    log = tmp_path / "store.sqlite-wal"
    for n in range(20):
        size = log.stat().st_size
        assert await unsyncable.append("s", [{"n": n}] * 100, durable=False) == n * 100
        assert log.stat().st_size > size


async def test_write_that_is_not_durable_succeeds_if_the_sync_before_a_checkpoint_fails(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(5, "Input/output error")

    with pytest.raises(StoreUnwritable):  # noqa: PT012  closing reports it
        async with open_sqlite(tmp_path) as store:
            await store.put("a", {})
            monkeypatch.setattr(os, "fdatasync", fail)
            assert await store.append("s", [{"n": 1}] * 600, durable=False) == 0
            assert await store.append("s", [{"n": 1}], durable=False) == 600


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_reading_does_not_wait_for_a_write_that_waits_for_another_process(tmp_path):
    with start(HOLDER, tmp_path) as holder:
        assert holder.stdout.readline() == "held\n"
        try:
            async with open_sqlite(tmp_path, busy_timeout=60) as store, anyio.create_task_group() as tasks:
                tasks.start_soon(store.put, "mine", {})
                tasks.start_soon(put_both, store, ("a", {}), ("b", {}))
                await anyio.lowlevel.checkpoint()
                with anyio.fail_after(30):
                    assert await store.get("held") is None
                    assert await store.read("s") == ()
                tasks.cancel_scope.cancel()
        finally:
            holder.kill()


async def test_short_writes_wait_for_another_process(tmp_path):
    with start(HOLDER, tmp_path) as holder:
        assert holder.stdout.readline() == "held\n"
        try:
            async with open_sqlite(tmp_path) as store, anyio.create_task_group() as tasks:
                for n in range(20):
                    tasks.start_soon(partial(store.append, "s", [{"n": n}], durable=False))
                await anyio.lowlevel.checkpoint()
                holder.stdin.write("\n")
                holder.stdin.flush()
        finally:
            holder.stdin.close()
    async with open_sqlite(tmp_path) as store:
        assert sorted(record.value["n"] for record in await store.read("s")) == list(range(20))
