"""Injected faults: plugins that hang, fail or are slow, full disks, torn files and killed workers."""

import errno

import anyio
import pytest
from sideband import OpFamily, Plugin, StoreError, op
from sideband.hooks import Input, OpCall, Verdict
from sideband.ledger import LedgerError
from sideband.ops import Level, OpError, OpParams, OpTimeout, Origin
from sideband.workers import WorkerError
from sideband_testing.chaos import (
    Crash,
    SelfCancel,
    Slow,
    WaitForever,
    WorkerKiller,
    faulty_hook,
    faulty_op,
    faulty_store,
    file_size_limit,
    tear,
)

pytestmark = pytest.mark.anyio


class Text(OpParams):
    text: str = ""


@op("notes.keep", level=Level.CONTROLLED, record=["text"])
async def keep(params: Text, ctx) -> str:
    return params.text


class NOTES:
    def sideband_ops():
        return OpFamily(name="notes", ops=(keep,))


NOTES = Plugin("op", "notes", NOTES)


async def put_many(store, count):
    for number in range(count):
        await store.put(f"k{number}", {})


async def put_in_transaction(store):
    async with store.transaction() as transaction:
        await transaction.put("in a transaction", {})


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_hook_that_hangs_is_ended_at_the_deadline_of_its_hook(sideband_host):
    fault = WaitForever()
    settings = {"policy": {"deadlines": {"input": 0.05}}}
    async with sideband_host(faulty_hook("input", fault), settings=settings) as host:
        assert (await host.hooks.update(Input("hello"))).text == "hello"
    assert fault.calls == 1
    assert fault.reached.is_set()


@pytest.mark.parametrize(
    "fault", [Crash(KeyError("x")), SelfCancel(), Crash(SystemExit(7))], ids=["error", "cancel", "exit"]
)
async def test_guard_that_fails_denies(sideband_host, fault):
    guard = faulty_hook("op_call", fault, kind="guard", name="broken")
    async with sideband_host(guard) as host:
        decision = await host.hooks.decide(OpCall("e1", "notes.keep", {}, Level.SAFE, Origin("user")))
    assert (decision.verdict, decision.plugin) == (Verdict.DENY, "broken")


async def test_op_misbehaves_from_the_chosen_call_on(sideband_host):
    fault = Crash(OSError(errno.ENOSPC, "no space left"), at=2)
    async with sideband_host(faulty_op(NOTES, "notes.keep", fault)) as host:
        assert await host.op("notes.keep", {"text": "a"}) == "a"
        with pytest.raises(OpError, match="no space left"):
            await host.op("notes.keep", {"text": "b"})


async def test_slow_op_exceeds_its_deadline(sideband_host):
    async with sideband_host(faulty_op(NOTES, "notes.keep", Slow(30))) as host:
        with pytest.raises(OpTimeout):
            await host.op("notes.keep", {}, deadline=0.05)


async def test_store_fails_from_the_chosen_write_on(sideband_host):
    async with sideband_host(faulty_store(at=1_000)) as host:
        with pytest.raises(StoreError, match="No space left"):
            await put_many(host.store, 1_000)
        with pytest.raises(StoreError):
            await put_in_transaction(host.store)
        assert await host.store.get("in a transaction") is None


async def test_torn_ledger_is_mended_by_the_next_host(sideband_host, caplog):
    async with sideband_host(NOTES) as host:
        await host.op("notes.keep", {"text": "a"})
    (file,) = host.ledger.folder.glob("*.jsonl")
    assert tear(file, -20).endswith(b"\n")
    async with sideband_host(NOTES) as host:
        assert await host.op("notes.keep", {"text": "b"}) == "b"
    assert "removed an incomplete line" in caplog.text


async def test_effects_are_refused_while_the_ledger_cannot_grow(sideband_host):
    async with sideband_host(NOTES) as host:
        await host.op("notes.keep", {"text": "a"})
        size = sum(file.stat().st_size for file in host.ledger.folder.glob("*.jsonl"))
        with file_size_limit(size + 10), pytest.raises(LedgerError):
            await host.op("notes.keep", {"text": "b"})
        assert await host.op("notes.keep", {"text": "c"}) == "c"


async def test_killed_worker_fails_its_call_and_the_next_call_has_another(sideband_host, worker):
    source = """
from sideband.skill import notes, tool

@tool
async def both() -> str:
    await notes.keep(text="a")
    return await notes.keep(text="b")
"""
    folder = worker.skill("twice", source, capabilities="notes")
    killer = WorkerKiller(at=2)
    plugins = (NOTES, killer.plugin, "loader.skills")
    async with sideband_host(*plugins, skill_dirs=[folder], grants={"twice": ["notes"]}) as host:
        with anyio.fail_after(30):
            with pytest.raises(WorkerError, match="SIGKILL"):
                await host.call("twice.both")
            assert await host.call("twice.both") == "b"
    assert killer.killed
