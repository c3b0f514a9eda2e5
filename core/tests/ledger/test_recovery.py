"""Recovery after a crash: the chain is intact, acknowledged entries exist, and unsettled effects are listed once."""

import json
import os
import signal
from functools import partial

import anyio
import pytest
from sideband.ledger import Intent, Ledger, LedgerBusy, Outcome, query, tail, verify
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def until(condition):
    with anyio.fail_after(5):
        while not condition():  # noqa: ASYNC110 -- there is no event for a change of a file
            await anyio.sleep(0.001)


async def settle(ledger, orphans):
    for intent in orphans:
        await ledger.outcome(Outcome(effect=intent.effect, op=intent.op, status="unknown"), due=True)


@pytest.mark.parametrize("rotate", [1 << 20, 2000])
@pytest.mark.parametrize("kill_after", [1, 5, 40])
async def test_killed_host_loses_no_acknowledged_entries(tmp_path, folder, start_host, rotate, kill_after):
    host = start_host(100_000, rotate=rotate)
    acknowledged = [host.stdout.readline().strip() for _ in range(kill_after)]
    host.send_signal(signal.SIGKILL)
    acknowledged += [line.strip() for line in host.stdout if line.endswith("\n")]
    async with open_sqlite(tmp_path) as store:
        async with Ledger(folder, store, rotate_bytes=rotate) as ledger:
            orphans = await ledger.orphans()
            assert len(orphans) <= 1
            await settle(ledger, orphans)
            await ledger.outcome(Outcome(effect=ledger.new_effect_id(), op="x.y", status="unknown"))
        verdict = await verify(folder, store)
        assert verdict.ok, verdict.problems
        known = {record.effect: record.status for record in await query(folder, limit=1_000_000)}
    assert set(acknowledged) <= set(known)
    assert all(known[intent.effect] == "unknown" for intent in orphans)
    assert set(known.values()) <= {"done", "unknown"}
    assert list((folder / "hosts").iterdir()) == []


async def test_concurrent_processes_share_one_chain(tmp_path, folder, store, start_host):
    hosts = [start_host(100, rotate=4000) for _ in range(3)]
    acknowledged = [host.communicate(timeout=60)[0].split() for host in hosts]
    assert [lines[-1] for lines in acknowledged] == ["end"] * 3
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    known = {record.effect for record in await query(folder, limit=1000)}
    assert known == {effect for lines in acknowledged for effect in lines[:-1]}


@pytest.mark.parametrize("torn", [b"{", b'{"hash":"' + b"0" * 64 + b'","seq":9', b"\x00" * 5000, b"x" * 200_000])
async def test_incomplete_last_line_is_removed_and_recorded(folder, store, write, torn):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 2)
    path = folder / "00000001.jsonl"
    path.write_bytes(path.read_bytes() + torn)
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
    notice = next(entry for entry in await tail(folder) if entry.kind == "recovery")
    assert notice.fields["bytes"] == len(torn)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert str(len(torn)) in str(verdict.notices[0])


async def test_incomplete_line_is_removed_by_a_running_host(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 1)
        with (folder / "00000001.jsonl").open("ab") as file:
            file.write(b'{"hash":"torn')
        await write(ledger, 1)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems
    assert len(verdict.notices) == 1


async def test_empty_last_segment_is_used(folder, store, write):
    async with Ledger(folder, store, rotate_bytes=1) as ledger:
        await write(ledger, 1)
    last = max(folder.glob("*.jsonl"))
    (folder / f"{int(last.stem) + 1:08d}.jsonl").touch()
    async with Ledger(folder, store, rotate_bytes=1) as ledger:
        await write(ledger, 1)
    verdict = await verify(folder, store)
    assert verdict.ok, verdict.problems


async def test_only_unsettled_effects_of_dead_hosts_are_orphans(folder, store, start_host):
    dead, living = start_host(3, leave_open=True), start_host(2, leave_open=True)
    left = [[line.strip() for line in iter(host.stdout.readline, "end\n")] for host in (dead, living)]
    dead.kill()
    dead.wait()
    async with Ledger(folder, store) as ledger:
        orphans = await ledger.orphans()
        assert [intent.effect for intent in orphans] == left[0]
        assert [intent.params["n"] for intent in orphans] == [0, 1, 2]
        assert {intent.op for intent in orphans} == {"test.write"}


async def test_orphans_belong_to_one_host_until_it_closes(folder, store, start_host):
    dead = start_host(2, leave_open=True)
    for _ in iter(dead.stdout.readline, "end\n"):
        pass
    dead.kill()
    dead.wait()
    async with Ledger(folder, store) as first:
        orphans = await first.orphans()
        async with Ledger(folder, store) as second:
            assert await second.orphans() == ()
        await settle(first, orphans[:1])
    async with Ledger(folder, store) as third:
        rest = await third.orphans()
        assert [intent.effect for intent in rest] == [orphans[1].effect]
        await settle(third, rest)
        assert await third.orphans() == ()
    assert list((folder / "hosts").iterdir()) == []
    assert {record.status for record in await query(folder)} == {"unknown"}


async def test_file_of_a_dead_host_remains_until_its_outcomes_are_on_disk(
    folder, store, write, start_host, monkeypatch
):
    """A power failure must not lose an outcome and keep the removal: no host would settle the effect."""
    dead = start_host(1, leave_open=True)
    name = dead.stdout.readline().rpartition("-")[0]
    dead.kill()
    dead.wait()

    def fail(descriptor):
        raise OSError(5, "Input/output error")

    async with Ledger(folder, store, head_interval=1_000) as ledger:
        await settle(ledger, await ledger.orphans())
        monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.undo()
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        assert await ledger.orphans() == ()
        assert (folder / "hosts" / name).exists()
        await write(ledger, 1)
    assert not (folder / "hosts" / name).exists()


async def test_host_that_cannot_read_the_ledger_leaves_the_effects_of_dead_hosts_to_another(folder, store, start_host):
    dead = start_host(1, leave_open=True)
    effect = dead.stdout.readline().strip()
    dead.kill()
    dead.wait()
    (folder / "00000002.jsonl").mkdir()
    async with Ledger(folder, store) as first, Ledger(folder, store) as second:
        with pytest.raises(IsADirectoryError):
            await first.orphans()
        (folder / "00000002.jsonl").rmdir()
        assert [intent.effect for intent in await second.orphans()] == [effect]


async def test_effects_running_at_close_are_orphans_for_the_next_host(folder, store):
    async with Ledger(folder, store) as ledger:
        effect = ledger.new_effect_id()
        await ledger.intent(Intent(effect=effect, op="x.y"), durable=False)
    async with Ledger(folder, store) as ledger:
        assert [intent.effect for intent in await ledger.orphans()] == [effect]


async def test_lost_mark_makes_recovery_read_the_whole_ledger(folder, store, start_host):
    dead = start_host(5, leave_open=True)
    left = [line.strip() for line in iter(dead.stdout.readline, "end\n")]
    dead.kill()
    dead.wait()
    for mark in (b"", b"\x00" * 64, b'{"segment": 1}'):
        (folder / "hosts" / left[0].rpartition("-")[0]).write_bytes(mark)
        async with Ledger(folder, store) as ledger:
            assert [intent.effect for intent in await ledger.orphans()] == left, mark


async def test_recovery_of_a_new_host_does_not_read_the_lines_before_it(folder, store, write):
    async with Ledger(folder, store) as ledger:
        await write(ledger, 5)
    earlier = (folder / "00000001.jsonl").stat().st_size
    async with Ledger(folder, store, head_interval=1_000) as ledger:
        await write(ledger, 1)
        (file,) = (folder / "hosts").iterdir()
        assert json.loads(file.read_text())["offset"] > earlier


async def test_mark_follows_the_oldest_running_effect(folder, store, write):
    async with Ledger(folder, store, head_interval=0) as ledger:
        await write(ledger, 200)
        (file,) = (folder / "hosts").iterdir()
        for _ in range(2):
            size = (folder / "00000001.jsonl").stat().st_size
            await until(lambda size=size: str(size) in file.read_text())
            await write(ledger, 1)


@both_backends
async def test_entry_is_written_after_another_host_has_released_the_lock(folder, store, write):
    import fcntl

    async with Ledger(folder, store) as ledger, anyio.create_task_group() as tasks:
        await write(ledger, 1)
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tasks.start_soon(partial(ledger.intent, Intent(effect="late", op="test.write"), durable=False))
            await until(lambda: ledger.is_running("late"))
        await until(lambda: '"effect":"late"' in (folder / "00000001.jsonl").read_text())


@both_backends
async def test_lock_of_a_stopped_host_times_out_as_busy(folder, store, write):
    import fcntl

    async with Ledger(folder, store, lock_timeout=0.05) as ledger:
        await write(ledger, 1)
        with (folder / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with pytest.raises(LedgerBusy) as caught:
                await write(ledger, 1)
            assert caught.value.retryable
            ledger._lock_timeout = 10
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: write(ledger, 1))
                await anyio.sleep(0.01)
                fcntl.flock(lock, fcntl.LOCK_UN)
    verdict = await verify(folder, store)
    assert (verdict.ok, verdict.entries) == (True, 6)


@both_backends
async def test_head_is_stored_while_the_host_is_running(folder, store, write):
    async with Ledger(folder, store, head_interval=0) as ledger:
        await write(ledger, 10)
        with anyio.fail_after(5):
            while (await store.get("ledger/head")).value["seq"] < 21:
                await anyio.lowlevel.checkpoint()
