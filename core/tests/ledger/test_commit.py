"""Group commit: appends during a sync share the next sync, even if some of their tasks are cancelled."""

import asyncio
import errno
import os
import threading
from pathlib import Path

import anyio
import pytest
from sideband.ledger import Intent, Ledger, LedgerUnwritable, Outcome, query
from sideband.ledger._lock import folder_lock
from sideband.ops import Level

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Disk:
    """A disk whose syncs block until ``may_end`` is set."""

    def __init__(self):
        self.syncs = 0
        self.may_end = threading.Event()
        self.began = threading.Event()
        self.ended = threading.Event()
        self.may_end.set()

    def sync(self, descriptor):
        self.syncs += 1
        self.began.set()
        assert self.may_end.wait(20)
        try:
            os.fsync(descriptor)
        finally:
            self.ended.set()


@pytest.fixture
def disk(monkeypatch):
    disk = Disk()
    monkeypatch.setattr("sideband.ledger._commit.sync_data", disk.sync)
    yield disk
    disk.may_end.set()


@pytest.fixture
async def ledger(folder, store, disk, write):
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        await write(ledger, 1, durable=True)
        await anyio.wait_all_tasks_blocked()
        disk.syncs = 0
        disk.may_end.clear()
        disk.began.clear()
        disk.ended.clear()
        yield ledger
        disk.may_end.set()


async def record(ledger, done):
    await ledger.intent(Intent(effect=ledger.new_effect_id(), op="test.write"), durable=True)
    done.append(True)


@both_backends
async def test_appends_during_a_sync_share_the_next_sync(ledger, disk):
    done = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(record, ledger, done)
        await anyio.to_thread.run_sync(disk.began.wait, 20)
        for _ in range(10):
            tasks.start_soon(record, ledger, done)
        await anyio.wait_all_tasks_blocked()
        assert not done
        disk.may_end.set()
    assert (len(done), disk.syncs) == (11, 2)


@both_backends
async def test_outcome_that_is_written_during_a_sync_needs_another_one(ledger, disk):
    effect = await begin(ledger, Level.MONITORED)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(record, ledger, [])
        await anyio.to_thread.run_sync(disk.began.wait, 20)
        await end(ledger, effect, due=True)
        disk.may_end.set()
    await begin(ledger, Level.MONITORED)
    assert disk.syncs == 2


@both_backends
async def test_next_sync_is_started_by_another_task_if_its_starter_is_cancelled(ledger, disk):
    done, never = [], []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(record, ledger, done)
        await anyio.to_thread.run_sync(disk.began.wait, 20)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as others:
                others.start_soon(record, ledger, never)
                await anyio.wait_all_tasks_blocked()
                for _ in range(3):
                    tasks.start_soon(record, ledger, done)
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        disk.may_end.set()
    assert (len(done), disk.syncs, never) == (4, 2, [])


async def test_sync_of_a_cancelled_asyncio_task_affects_no_other(ledger, disk):
    """Its thread goes on, and must not find its descriptor closed: a failed sync would be the last one."""
    task = asyncio.ensure_future(record(ledger, []))
    await anyio.to_thread.run_sync(disk.began.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    disk.may_end.set()
    await anyio.to_thread.run_sync(disk.ended.wait, 20)
    await record(ledger, [])
    assert disk.syncs == 2


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


@both_backends
async def test_sync_that_is_cancelled_before_it_has_a_thread_leaves_no_open_file(ledger, monkeypatch):
    opened = open_files()
    monkeypatch.setattr(anyio.to_thread.current_default_thread_limiter(), "total_tokens", 1)
    async with anyio.to_thread.current_default_thread_limiter():
        with anyio.move_on_after(0):
            await record(ledger, [])
    assert open_files() == opened


@pytest.fixture
async def idle(folder, store):
    """A ledger that does not sync in the background."""
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        await begin(ledger, Level.SAFE)
        yield ledger


async def begin(ledger, level, *, durable=False):
    effect = ledger.new_effect_id()
    await ledger.intent(Intent(effect=effect, op="test.write", level=level), durable=durable)
    return effect


async def end(ledger, effect, *, due=False):
    await ledger.outcome(Outcome(effect=effect, op="test.write", status="done"), due=due)


async def test_effects_that_are_not_durable_need_no_sync(idle, syncs):
    await end(idle, await begin(idle, Level.MONITORED))
    await begin(idle, Level.CONTROLLED)
    assert syncs == []


async def test_outcome_that_is_due_is_synced_before_the_next_effect(idle, syncs):
    await end(idle, await begin(idle, Level.CONTROLLED), due=True)
    assert syncs == []
    await begin(idle, Level.MONITORED)
    await begin(idle, Level.MONITORED)
    assert syncs == ["00000001.jsonl"]


async def test_outcome_that_is_recorded_without_waiting_can_be_due(idle, syncs):
    effect = await begin(idle, Level.CONTROLLED)
    assert idle.outcome_now(Outcome(effect=effect, op="test.write", status="done"), due=True)
    await begin(idle, Level.MONITORED)
    assert syncs == ["00000001.jsonl"]


async def test_outcome_cannot_be_recorded_without_waiting_for_another_writer(idle, folder):
    effect = await begin(idle, Level.MONITORED)
    outcome = Outcome(effect=effect, op="test.write", status="done")
    with folder_lock(folder) as another:
        assert another.try_acquire()
        assert not idle.outcome_now(outcome)
    assert idle.outcome_now(outcome)
    (record,) = [record for record in await query(folder) if record.effect == effect]
    assert record.status == "done"


async def test_one_sync_is_enough_for_a_due_outcome_and_a_durable_intent(idle, syncs):
    await end(idle, await begin(idle, Level.CONTROLLED), due=True)
    await begin(idle, Level.CONTROLLED, durable=True)
    assert syncs == ["00000001.jsonl"]


async def test_sync_before_an_effect_also_covers_the_store(idle, store):
    await end(idle, await begin(idle, Level.CONTROLLED), due=True)
    await store.put("a", {}, durable=False)
    await begin(idle, Level.MONITORED)
    assert store.unsynced() is None


async def test_safe_effects_do_not_wait_for_a_due_outcome(idle, syncs):
    await end(idle, await begin(idle, Level.CONTROLLED), due=True)
    await begin(idle, Level.SAFE)
    assert syncs == []


async def test_effect_is_refused_if_a_due_outcome_cannot_be_synced(idle, monkeypatch):
    await end(idle, await begin(idle, Level.CONTROLLED), due=True)

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(LedgerUnwritable):
        await begin(idle, Level.MONITORED)


async def test_effect_is_refused_if_no_file_can_be_opened_for_the_sync_and_the_next_one_is_not(idle, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "dup", fail)
        with pytest.raises(LedgerUnwritable, match="Too many open files"):
            await begin(idle, Level.CONTROLLED, durable=True)
    await begin(idle, Level.CONTROLLED, durable=True)


async def test_names_of_a_new_ledger_are_synced_up_to_its_home(tmp_path, store, monkeypatch):
    """A power failure must not lose the file of the host, a segment, or a new folder with all lines."""
    synced = []
    sync = os.fsync

    def syncing(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", syncing)
    folder = tmp_path / "home" / "ledger"
    for names in ({folder / "hosts", folder, folder.parent, tmp_path}, {folder / "hosts", folder}):
        async with Ledger(folder, store, head_interval=1_000, rotate_bytes=1) as ledger:
            await begin(ledger, Level.SAFE)
        assert set(synced) == names
        synced.clear()


class FailingSync:
    """``os.fdatasync`` that fails for the segments of the ledger, once."""

    def __init__(self):
        self.calls = 0

    def __call__(self, descriptor):
        if not Path(f"/proc/self/fd/{descriptor}").readlink().name.endswith(".jsonl"):
            return os.fsync(descriptor)
        self.calls += 1
        if self.calls == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.fsync(descriptor)


@pytest.fixture
def failing(monkeypatch):
    failing = FailingSync()
    monkeypatch.setattr(os, "fdatasync", failing)
    return failing


async def test_failed_sync_is_not_tried_again(idle, failing):
    # the system may have dropped what it could not write, so that the next sync would succeed
    for _ in range(3):
        with pytest.raises(LedgerUnwritable, match=r"cannot sync ledger .*: No space left on device") as caught:
            await begin(idle, Level.CONTROLLED, durable=True)
        assert (caught.value.retryable, caught.value.errno) == (False, errno.ENOSPC)
        assert "restart" in caught.value.hint
    with pytest.raises(LedgerUnwritable):
        await idle.sync()
    assert failing.calls == 1


async def test_failed_sync_is_reported_to_all_waiting_tasks(idle, failing):
    errors = []

    async def use():
        try:
            await begin(idle, Level.CONTROLLED, durable=True)
        except LedgerUnwritable as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(use)
    assert (len(set(map(id, errors))), failing.calls) == (5, 1)


async def test_entries_that_are_not_durable_are_written_after_a_failed_sync(idle, failing):
    with pytest.raises(LedgerUnwritable):
        await idle.sync()
    await end(idle, await begin(idle, Level.MONITORED))


async def test_failed_sync_is_not_tried_again_by_a_new_segment(folder, store, failing):
    async with Ledger(folder, store, rotate_bytes=1, head_interval=1_000) as ledger:
        for _ in range(4):
            await begin(ledger, Level.SAFE)
        with pytest.raises(LedgerUnwritable):
            await ledger.sync()
    assert failing.calls == 1


async def test_next_host_syncs_again(folder, store, failing):
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        with pytest.raises(LedgerUnwritable):
            await begin(ledger, Level.CONTROLLED, durable=True)
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        await begin(ledger, Level.CONTROLLED, durable=True)
        assert failing.calls == 2


async def test_sync_fails_if_the_chain_gets_the_error_of_the_segment_meanwhile(folder, store, disk, monkeypatch):
    """The system reports an error once. The other sync of the same file then succeeds."""

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    errors = []

    async def sync(ledger):
        try:
            await ledger.sync()
        except LedgerUnwritable as error:
            errors.append(error)

    async with Ledger(folder, store, head_interval=1_000, rotate_bytes=1) as ledger:
        first = await begin(ledger, Level.SAFE)
        disk.may_end.clear()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sync, ledger)
            await anyio.to_thread.run_sync(disk.began.wait, 20)
            monkeypatch.setattr("sideband.ledger._chain.sync_data", fail)
            await end(ledger, first)
            disk.may_end.set()
    assert len(errors) == 1
