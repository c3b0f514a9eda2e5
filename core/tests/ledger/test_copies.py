"""Copies of the ledgers of other homes, which hosts that share a store can read."""

import anyio
import pytest
from sideband.ledger import Ledger, fetch_copies, query, verify

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path, shared_store, write):
    """Return a function that opens the ledger of a home in the shared store and records effects."""

    async def use(name, count, **options):
        async with (
            shared_store.open_shared(tmp_path / name / "store") as store,
            Ledger(tmp_path / name / "ledger", store, **options) as ledger,
        ):
            effects = await write(ledger, count, op=f"{name}.go") if count else []
            copies = await fetch_copies(store, ledger.folder)
        return effects, copies, store

    return use


@pytest.fixture
def reader(tmp_path, shared_store):
    """Return a function that fetches the copies for another home, and returns their ids of effects and their state."""

    async def read():
        async with shared_store.open_shared(tmp_path / "reader" / "store") as store:
            copies = await fetch_copies(store, tmp_path / "reader" / "ledger")
            found = [[one.effect for one in reversed(await query(folder, limit=1_000))] for folder in copies]
            return found, [await verify(folder, store) for folder in copies]

    return read


async def test_ledgers_of_other_homes_can_be_queried_and_verified(home, reader):
    effects = [(await home(name, count))[0] for name, count in (("one", 3), ("two", 2))]
    found, verdicts = await reader()
    assert sorted(found) == sorted(effects)
    assert all(one.ok and one.head is not None for one in verdicts)
    _, copies, _ = await home("one", 0)
    assert len(copies) == 1


async def test_copy_continues_where_it_ended_over_several_segments(home, reader):
    effects = []
    for _ in range(4):
        effects += (await home("one", 30, rotate_bytes=4_000))[0]
        ((found,), (verdict,)) = await reader()
        assert found == effects
        assert verdict.ok


async def test_effects_are_copied_while_the_host_runs(tmp_path, shared_store, write, reader):
    async with (
        shared_store.open_shared(tmp_path / "one" / "store") as store,
        Ledger(tmp_path / "one" / "ledger", store, head_interval=0.01) as ledger,
    ):
        effects = await write(ledger, 2)
        with anyio.fail_after(20):
            while (await reader())[0] != [effects]:
                pass


async def test_two_hosts_of_one_home_copy_each_line_once(tmp_path, shared_store, write, reader):
    folder, effects = tmp_path / "one" / "ledger", []

    async def record(ledger):
        for _ in range(10):
            effects.extend(await write(ledger, 3))
            await ledger._save_head()

    async with (
        shared_store.open_shared(tmp_path / "one" / "store") as store,
        Ledger(folder, store) as one,
        Ledger(folder, store) as two,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(record, one)
        tasks.start_soon(record, two)
    ((found,), (verdict,)) = await reader()
    assert sorted(found) == sorted(effects)
    assert verdict.ok


async def test_ledger_that_lost_lines_is_copied_again_and_the_first_copy_remains(home, reader, tmp_path):
    first, _, _ = await home("one", 3)
    await reader()
    path = tmp_path / "one" / "ledger" / "00000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-3]))
    second, _, _ = await home("one", 2)
    ((found,), _) = await reader()
    assert found == [*first[:2], *second]
    kept = [await query(folder) for folder in sorted((tmp_path / "reader" / "ledgers").iterdir())]
    assert sorted(len(one) for one in kept) == [3, 4]


async def test_changed_copy_is_detected(home, reader, tmp_path):
    await home("one", 3)
    await reader()
    (path,) = (tmp_path / "reader" / "ledgers").glob("*/00000001.jsonl")
    path.write_bytes(path.read_bytes().replace(b"one.go", b"two.go", 1))
    _, (verdict,) = await reader()
    assert not verdict.ok


async def test_store_that_is_not_shared_has_no_copies(tmp_path, store, write):
    async with Ledger(tmp_path / "ledger", store) as ledger:
        await write(ledger, 1)
        assert await fetch_copies(store, ledger.folder) == ()
    assert await store.keys("ledger/copies/") == ()
