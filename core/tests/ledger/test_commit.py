"""Group commit: appends during a sync share the next sync, even if some of their tasks are cancelled."""

import os
import threading

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
        self.may_end.set()

    def sync(self, descriptor):
        self.syncs += 1
        self.began.set()
        assert self.may_end.wait(20)
        os.fsync(descriptor)


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


@pytest.mark.parametrize("rotate_bytes", [1, 1_000_000])
async def test_sync_that_failed_once_is_never_repeated(folder, store, monkeypatch, rotate_bytes):
    """The system may regard what it could not write as written. A further sync would then succeed."""
    failures = [OSError(5, "Input/output error")]
    real = os.fdatasync

    def sync(descriptor):
        if failures:
            raise failures.pop()
        real(descriptor)

    async with Ledger(folder, store, head_interval=1_000, rotate_bytes=rotate_bytes) as ledger:
        first = await begin(ledger, Level.MONITORED)
        monkeypatch.setattr(os, "fdatasync", sync)
        await end(ledger, first, due=True)
        for level, durable in ((Level.CONTROLLED, True), (Level.MONITORED, False), (Level.CONTROLLED, True)):
            with pytest.raises(LedgerUnwritable):
                await begin(ledger, level, durable=durable)
        with pytest.raises(LedgerUnwritable):
            await ledger.sync()
        assert not failures
        await end(ledger, await begin(ledger, Level.SAFE))
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        await begin(ledger, Level.CONTROLLED, durable=True)
