"""Short operations run on the event loop, long ones and syncs in a thread, and concurrent tasks share syncs."""

import asyncio
import inspect
import threading

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband import StoreConflict
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

VALUE = {"state": "taken", "effect": "e" * 26, "op": "http.get", "time": 1.2, "digest": "d" * 64, "result": None}
LONG = {"text": "x" * 40_000}
GREW = "the path of a short operation has become longer: profile it, and shorten it or raise the bound with a reason"


@pytest.fixture
def hops(monkeypatch):
    """Return a list of the functions that were run in a thread."""
    found = []
    run_sync = to_thread.run_sync

    def counting(function, *arguments, **options):
        found.append(function)
        return run_sync(function, *arguments, **options)

    monkeypatch.setattr(to_thread, "run_sync", counting)
    return found


@pytest.fixture
async def begun(store, hops, syncs):
    """Return the store after its first write, which always runs in a thread."""
    await store.put("first", {})
    assert len(hops) == 2
    del hops[:], syncs[:]
    return store


async def write_both(store, **options):
    async with store.transaction(**options) as transaction:
        await transaction.append("s", [VALUE])
        await transaction.put("head", VALUE)


async def test_short_operations_need_no_thread_and_no_sync(begun, hops, syncs):
    await begun.put("a", VALUE, version=0, durable=False)
    await begun.append("s", [VALUE, VALUE], durable=False)
    assert (await begun.get("a")).value == VALUE
    assert len(await begun.read("s", limit=2)) == 2
    assert await begun.keys() == ("a", "first")
    assert await begun.delete("a", durable=False)
    for _ in range(20):
        await write_both(begun, durable=False)
    assert (hops, syncs) == ([], [])


async def test_durable_write_needs_one_thread_and_one_sync(begun, hops, syncs):
    await begun.put("a", VALUE)
    assert (len(hops), syncs) == (1, ["store.sqlite-wal"])
    await write_both(begun)
    assert (len(hops), len(syncs)) == (2, 2)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_concurrent_durable_writes_share_syncs(begun, hops, syncs):
    async with anyio.create_task_group() as tasks:
        for n in range(100):
            tasks.start_soon(begun.put, f"k/{n}", VALUE)
    assert len(await begun.keys("k/")) == 100
    # the first task syncs its own write, and the others share the next sync
    assert (len(hops) <= 4, len(syncs) <= 4) == (True, True)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_tasks_that_wait_for_a_transaction_need_no_threads(begun, hops):
    async def put(n):
        await begun.put(f"k/{n}", VALUE, durable=False)

    async with anyio.create_task_group() as tasks, begun.transaction(durable=False) as transaction:
        for n in range(100):
            tasks.start_soon(put, n)
        await anyio.wait_all_tasks_blocked()
        assert await transaction.keys("k/") == ()
    assert len(await begun.keys("k/")) == 100
    assert hops == []


async def test_sync_with_nothing_to_sync_needs_no_thread(begun, hops, syncs):
    await begun.sync()
    assert (hops, syncs) == ([], [])
    await begun.put("a", {}, durable=False)
    await begun.sync()
    await begun.sync()
    assert (len(hops), len(syncs)) == (1, 1)


async def test_sync_covers_writes_of_other_hosts(begun, tmp_path, syncs):
    async with open_sqlite(tmp_path) as other:
        await other.put("theirs", {}, durable=False)
        del syncs[:]
        await begun.sync()
        assert len(syncs) == 1
        await begun.sync()
        assert len(syncs) == 1


async def test_sync_of_a_newly_opened_store_covers_what_a_killed_host_left(tmp_path, syncs):
    async with open_sqlite(tmp_path) as store:
        assert syncs == []
        await store.sync()
        assert syncs == ["store.sqlite-wal"]


async def test_closing_syncs_what_is_not_on_disk(tmp_path, syncs):
    async with open_sqlite(tmp_path), open_sqlite(tmp_path) as store:
        await store.put("a", {}, durable=False)
        assert syncs == []
    assert syncs[0] == "store.sqlite-wal"


async def test_work_of_a_sync_can_be_run_in_a_thread_of_the_caller(begun, hops, syncs):
    assert begun.unsynced() is None
    await begun.put("a", {}, durable=False)
    job = begun.unsynced()
    await anyio.to_thread.run_sync(job)
    assert (begun.unsynced(), syncs) == (None, ["store.sqlite-wal"])


async def test_work_of_a_sync_is_not_repeated_after_another_one(begun, syncs):
    await begun.put("a", {}, durable=False)
    job = begun.unsynced()
    await begun.sync()
    await anyio.to_thread.run_sync(job)
    assert len(syncs) == 1


@pytest.mark.parametrize(
    "operation",
    [
        lambda store: store.put("a", LONG, durable=False),
        lambda store: store.append("s", [{"n": n} for n in range(300)], durable=False),
        lambda store: store.get("long"),
        lambda store: store.read("many"),
        lambda store: store.keys("k/"),
        lambda store: store.delete_stream("s", durable=False),
    ],
    ids=["put", "append", "get", "read", "keys", "delete_stream"],
)
async def test_long_operation_runs_in_one_thread(begun, hops, operation):
    async with begun.transaction(durable=False) as transaction:
        await transaction.put("long", LONG)
        await transaction.append("many", [{"n": n} for n in range(300)])
        for n in range(300):
            await transaction.put(f"k/{n}", {})
    del hops[:]
    await operation(begun)
    assert len(hops) == 1


async def test_large_transaction_is_committed_in_a_thread(begun, hops):
    async with begun.transaction(durable=False) as transaction:
        for n in range(40):
            await transaction.put(f"k/{n}", {})
        assert hops == []
    assert len(hops) == 1


async def test_transaction_with_a_large_value_is_committed_in_a_thread(begun, hops):
    async with begun.transaction(durable=False) as transaction:
        await transaction.put("a", LONG)
        assert len(hops) == 1
    assert len(hops) == 2


async def test_durable_write_does_not_wait_for_later_writes(begun, hops, syncs):
    task = asyncio.create_task(begun.put("a", {}))
    while not hops:  # noqa: ASYNC110  the number of turns before its thread starts is that of anyio
        await asyncio.sleep(0)
    await begun.put("b", {}, durable=False)
    await task
    assert len(syncs) == 1
    assert begun.unsynced() is not None


async def test_checkpoint_runs_in_a_thread_and_keeps_the_log_short(begun, hops, tmp_path):
    for n in range(2_000):
        await begun.put("a", {"n": n, "text": "x" * 3_000}, durable=False)
    assert len(hops) == 2 * (2_000 // 500)  # a sync and a checkpoint
    assert (tmp_path / "store.sqlite-wal").stat().st_size < 3_000_000


async def test_checkpoint_follows_a_few_large_values(begun, tmp_path):
    for n in range(30):
        await begun.put("a", {"n": n, "text": chr(65 + n) * 1_000_000}, durable=False)
    assert (tmp_path / "store.sqlite-wal").stat().st_size < 12_000_000


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_task_that_only_writes_lets_others_run(begun):
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        for n in range(320):
            await begun.put("a", {"n": n}, durable=False)
        tasks.cancel_scope.cancel()
    assert turns >= 8


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_cancelled_task_writes_nothing(begun):
    with anyio.CancelScope() as scope:
        scope.cancel()
        await begun.put("a", {}, durable=False)
    assert scope.cancelled_caught
    assert await begun.get("a") is None


@pytest.mark.parametrize("leader_is_cancelled", [True, False])
async def test_cancelled_durable_write_does_not_affect_others(begun, leader_is_cancelled):
    tasks = [asyncio.create_task(begun.put(f"k/{n}", {})) for n in range(5)]
    await asyncio.sleep(0)
    cancelled = tasks.pop(0 if leader_is_cancelled else 1)
    cancelled.cancel()
    await asyncio.gather(*tasks)
    await asyncio.wait([cancelled])
    assert len(await begun.keys("k/")) == 5
    assert begun.unsynced() is None


async def test_event_loop_does_not_wait_for_a_thread_of_a_cancelled_task(begun):
    left, release = threading.Event(), threading.Event()

    def occupy(_limit, _database):
        left.set()
        release.wait()

    thread = threading.Thread(target=begun.connection.read, args=(None, occupy))
    thread.start()
    left.wait()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begun.put, "a", {})
            tasks.start_soon(begun.sync)
            await asyncio.sleep(0)
            # the event loop goes on while the connection is in use
            release.set()
    finally:
        release.set()
        thread.join()
    assert await begun.get("a") is not None


async def test_short_operations_call_few_functions_and_do_not_wait(begun, count_calls):
    def calls(operation):
        def run():
            try:
                operation.send(None)
            except StopIteration:
                return
            pytest.fail("the operation waits")

        return count_calls(run)

    assert calls(begun.put("a", VALUE, durable=False)) <= 31, GREW
    assert calls(begun.append("s", [VALUE], durable=False)) <= 33, GREW
    assert calls(begun.get("a")) <= 24, GREW
    assert calls(begun.read("s", limit=10)) <= 27, GREW
    await begun.sync()
    assert calls(begun.sync()) <= 12, GREW


async def write_and_fail(store, value):
    async with store.transaction() as transaction:
        await transaction.put("a", value)
        await transaction.delete_stream("s")
        raise ZeroDivisionError


LENGTHS = st.sampled_from([0, 10, 20_000, 40_000])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), LENGTHS, st.none() | st.integers(0, 2), st.booleans()),
            st.tuples(st.just("append"), st.lists(LENGTHS, max_size=3), st.booleans()),
            st.tuples(st.just("rolled back"), LENGTHS),
            st.tuples(st.just("transaction"), st.lists(LENGTHS, max_size=3), st.booleans()),
        ),
        max_size=12,
    )
)
async def test_operations_in_threads_and_on_the_event_loop_behave_equally(tmp_path_factory, steps):
    document, version, records = None, 0, []
    async with open_sqlite(tmp_path_factory.mktemp("equal")) as store:
        for name, what, *rest in steps:
            if name == "put":
                if rest[0] not in (None, version):
                    with pytest.raises(StoreConflict):
                        await store.put("a", {"text": "x" * what}, version=rest[0], durable=rest[1])
                    continue
                document, version = "x" * what, version + 1
                assert await store.put("a", {"text": document}, version=rest[0], durable=rest[1]) == version
            elif name == "append":
                assert await store.append("s", [{"text": "x" * n} for n in what], durable=rest[0]) == len(records)
                records += what
            elif name == "rolled back":
                with pytest.raises(ZeroDivisionError):
                    await write_and_fail(store, {"text": "x" * what})
            else:
                async with store.transaction(durable=rest[0]) as transaction:
                    await transaction.append("s", [{"text": "x" * n} for n in what])
                records += what
        found = await store.get("a")
        assert (None if found is None else found.value["text"]) == document
        assert (0 if found is None else found.version) == version
        assert [len(record.value["text"]) for record in await store.read("s")] == records


def test_every_write_of_a_store_can_be_durable_or_not():
    from sideband.store import Store
    from sideband_store_sqlite import SqliteStore

    for kind in (Store, SqliteStore):
        for name in ("put", "delete", "append", "delete_stream", "transaction"):
            parameter = inspect.signature(getattr(kind, name)).parameters["durable"]
            assert (parameter.default, parameter.kind) == (True, parameter.KEYWORD_ONLY)
