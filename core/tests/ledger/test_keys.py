"""Idempotency keys: the ledger knows which effect used a key last, whatever the index and other hosts do."""

import shutil
import sqlite3
import threading
from contextlib import AsyncExitStack, closing, suppress

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband.ledger import Intent, Ledger, LedgerIndexFailed, Outcome, query, verify
from sideband.ledger._index import Index
from sideband.ledger._keys import current_index
from sideband.ops import Origin
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def claim(ledger, key, principal="user", **fields):
    """Claim a key unless an effect has it, and return the id of that effect, or of the new one."""
    effect = ledger.new_effect_id()
    intent = Intent(effect=effect, op="bank.pay", key=key, origin=Origin(principal), **fields)
    held = await ledger.intent(intent, durable=False, unless=lambda found: found and found.effect)
    return held or effect


async def settle(ledger, effect, key, **fields):
    await ledger.outcome(Outcome(effect=effect, op="bank.pay", status="done", key=key, state="done", **fields))


async def fill(ledger, count=200):
    """Write so many lines that the keys before them are looked up in the index."""
    for number in range(count):
        await ledger.outcome(Outcome(effect=f"filler-{number}", op="x.y", status="denied", params={"text": "x" * 500}))


@pytest.fixture
async def ledger(folder, store):
    """Return a ledger that does not update the index in the background."""
    async with Ledger(folder, store, index_interval=1_000) as ledger:
        yield ledger


@pytest.fixture
async def other(folder, store):
    """Return the ledger of another host."""
    async with Ledger(folder, store, index_interval=1_000) as other:
        yield other


async def test_key_is_found_in_memory_until_it_is_in_the_index(folder, ledger):
    first = await claim(ledger, "k")
    await settle(ledger, first, "k", result={"paid": 5})
    for _ in range(2):
        found = await ledger.earlier("k", "user")
        assert (found.effect, found.status, found.result) == (first, "done", {"paid": 5})
        assert await claim(ledger, "k") == first
        ledger._chain.keys.use(current_index(folder))
        assert not ledger._chain.keys._intents
    assert await ledger.earlier("other", "user") is None
    assert await claim(ledger, "other") != first


async def test_new_host_finds_keys_of_a_small_ledger_without_an_index(folder, store, ledger, other):
    first = await claim(ledger, "k")
    assert await claim(other, "k") == first
    assert not Index.path(folder).exists()


async def test_new_host_finds_keys_of_a_large_ledger_in_the_index(folder, store, ledger, other):
    first = await claim(ledger, "k")
    await fill(ledger)
    assert await claim(other, "k") == first
    assert Index.path(folder).exists()
    assert await claim(other, "free") != first


async def test_outcome_in_memory_completes_an_intent_in_the_index(folder, ledger):
    first = await claim(ledger, "k")
    ledger._chain.keys.use(current_index(folder))
    await settle(ledger, first, "k", result=1)
    assert (await ledger.earlier("k", "user")).result == 1


async def test_lines_that_are_written_while_the_index_is_opened_remain_in_memory(folder, ledger):
    first = await claim(ledger, "k")
    index = current_index(folder)
    await settle(ledger, first, "k", result=1)
    second = await claim(ledger, "later")
    ledger._chain.keys.use(index)
    assert (await ledger.earlier("k", "user")).result == 1
    assert await claim(ledger, "later") == second


async def test_outcome_of_an_effect_of_another_host_settles_its_key_for_both(ledger, other):
    """Recovery writes such outcomes."""
    first = await claim(other, "k")
    assert await claim(ledger, "k") == first
    await settle(ledger, first, "k", result=1)
    for one in (ledger, other):
        assert await claim(one, "k") == first
        assert (await one.earlier("k", "user")).result == 1


async def test_look_up_of_a_key_reads_what_another_host_has_written(ledger, other):
    first = await claim(ledger, "k")
    await settle(other, first, "k")
    assert (await ledger.earlier("k", "user")).status == "done"


async def test_effect_that_gets_an_earlier_answer_is_not_running(folder, store):
    """It has no intent, so recovery has nothing to look for."""
    async with Ledger(folder, store) as ledger:
        await settle(ledger, await claim(ledger, "k"), "k")
        await claim(ledger, "k")
    assert list((folder / "hosts").iterdir()) == []


async def test_later_effect_with_a_key_replaces_an_earlier_one_in_the_index(folder, ledger):
    await claim(ledger, "k")
    ledger._chain.keys.use(current_index(folder))
    intent = Intent(effect=ledger.new_effect_id(), op="bank.pay", key="k")
    assert await ledger.intent(intent, durable=False, unless=lambda found: None) is None
    for _ in range(2):
        assert (await ledger.earlier("k", "user")).effect == intent.effect
        ledger._chain.keys.use(current_index(folder))


@pytest.mark.parametrize("how", ["old", "deleted", "damaged", "foreign", "emptied", "locked"])
async def test_keys_are_never_decided_from_an_index_that_lacks_lines(folder, ledger, other, tmp_path, how):
    path = Index.path(folder)
    await claim(ledger, "before")
    current_index(folder).close()
    shutil.copy(path, tmp_path / "old.sqlite")
    first = await claim(ledger, "k")
    await fill(ledger)
    ledger._chain.keys.use(current_index(folder))
    blocked = sqlite3.connect(path, isolation_level=None)
    if how == "old":
        Index.remove(folder)
        shutil.copy(tmp_path / "old.sqlite", path)
    elif how == "deleted":
        Index.remove(folder)
    elif how == "damaged":
        Index.remove(folder)
        path.write_bytes(b"nonsense" * 1000)
    elif how == "foreign":
        blocked.execute("UPDATE position SET digest = 'other'")
    elif how == "emptied":
        blocked.execute("DELETE FROM effects")
        blocked.execute("DELETE FROM position")
    else:
        blocked.execute("BEGIN IMMEDIATE")
    assert await claim(ledger, "k") == first
    blocked.close()
    assert await claim(other, "k") == first
    assert [one.effect for one in await query(folder, key="k")] == [first]


async def test_index_that_cannot_be_used_prevents_the_effect(folder, store, ledger, other):
    await claim(ledger, "k")
    await fill(ledger)
    Index.path(folder).mkdir()
    with pytest.raises(LedgerIndexFailed):
        await claim(other, "k")
    assert await ledger.earlier("k", "user")


async def test_keys_of_a_replaced_ledger_are_forgotten(folder, store, ledger):
    """The loss is recorded in the new ledger."""
    first = await claim(ledger, "k")
    for path in folder.glob("*.jsonl"):
        path.unlink()
    assert await claim(ledger, "k") != first
    assert not (await verify(folder, store)).ok


async def test_look_up_forgets_the_keys_of_a_ledger_that_another_host_has_begun_again(folder, ledger, other):
    await fill(ledger)
    ledger._chain.keys.use(current_index(folder))
    await claim(ledger, "k")
    for path in folder.glob("*.jsonl"):
        path.unlink()
    await claim(other, "other")
    assert await ledger.earlier("k", "user") is None


async def test_principals_have_their_own_keys_and_share_those_of_undo_steps(folder, ledger):
    for _ in range(2):
        found = {who: await claim(ledger, "k", who) for who in ("user", "alice", "")}
        assert len(set(found.values())) == 3
        undone = {await claim(ledger, "undo:e-1:0", who) for who in ("user", "alice", "")}
        assert len(undone) == 1
        ledger._chain.keys.use(current_index(folder))
        assert {who: await claim(ledger, "k", who) for who in found} == found


async def test_index_is_updated_in_the_background_while_a_host_is_open(folder, store, write):
    async with Ledger(folder, store, index_interval=0) as ledger:
        await write(ledger, 300)
        await until(lambda: count_of_effects(folder) == 300)


async def test_host_starts_to_update_the_index_without_writing(folder, store, ledger, write):
    await write(ledger, 300)
    async with Ledger(folder, store, index_interval=0):
        await until(lambda: count_of_effects(folder) == 300)


async def test_index_is_not_closed_on_the_event_loop(folder, store, monkeypatch):
    """The last connection that is closed moves the log of the index into its file, with several syncs."""
    threads = []
    close = Index.close

    def closing(index):
        threads.append(threading.current_thread())
        close(index)

    monkeypatch.setattr(Index, "close", closing)
    async with Ledger(folder, store, index_interval=0) as ledger:
        await claim(ledger, "k")
        await until(lambda: count_of_effects(folder) == 1 and threads)
        await query(folder, key="k")
        ledger._chain.keys.use(current_index(folder))
        count = len(threads)
    assert len(threads) > count
    assert threading.main_thread() not in threads


async def until(condition):
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 -- there is no event for a change of the index
            await anyio.sleep(0.01)


def count_of_effects(folder):
    if not Index.path(folder).exists():
        return 0
    with closing(sqlite3.connect(f"file:{Index.path(folder)}?mode=ro", uri=True)) as database:
        try:
            return database.execute("SELECT COUNT(*) FROM effects").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


async def test_memory_for_keys_is_bounded(folder, store, monkeypatch):
    monkeypatch.setattr("sideband.ledger._keys._MAX_KEYS", 20)
    async with Ledger(folder, store, index_interval=0) as ledger:
        effects = [await claim(ledger, f"k{number}") for number in range(50)]
        await until(lambda: len(ledger._chain.keys._intents) <= 20)
        assert [await claim(ledger, f"k{number}") for number in range(50)] == effects


def step(coroutine):
    """Run a coroutine that never waits, so that the calls of the event loop are not counted."""
    with suppress(StopIteration):
        coroutine.send(None)
        pytest.fail("it waits: an effect must not depend on a thread or another task to claim its key")


async def test_claiming_a_key_and_settling_it_takes_little_work(ledger, count_calls):
    await settle(ledger, await claim(ledger, "first"), "first")
    effect = ledger.new_effect_id()
    intent = Intent(effect=effect, op="bank.pay", key="k", params={"amount": 5})
    outcome = Outcome(effect=effect, op="bank.pay", status="done", key="k", state="done", result=5, ms=1.5)

    def effect_with_a_key():
        step(ledger.intent(intent, durable=False, unless=lambda found: None))
        step(ledger.outcome(outcome))

    calls = count_calls(effect_with_a_key)
    assert calls <= 84, f"{calls} calls: the path of each effect with a key has become longer; shorten it"


async def test_keys_are_looked_up_in_the_index_without_waiting(folder, ledger, count_calls):
    await claim(ledger, "old")
    ledger._chain.keys.use(current_index(folder))
    for key in ("old", "new"):
        intent = Intent(effect=ledger.new_effect_id(), op="bank.pay", key=key)
        step(ledger.intent(intent, durable=False, unless=lambda found: found and found.effect))


async def test_first_key_of_a_host_needs_no_thread_once_the_index_is_up_to_date(folder, store, ledger):
    await claim(ledger, "old")
    await fill(ledger)
    async with Ledger(folder, store, index_interval=0) as later:
        await until(lambda: later._chain.keys._index is not None)
        await later.intent(Intent(effect=later.new_effect_id(), op="x.y"), durable=False)
        intent = Intent(effect=later.new_effect_id(), op="bank.pay", key="old")
        step(later.intent(intent, durable=False, unless=lambda found: found and found.effect))


steps = st.lists(
    st.tuples(
        st.sampled_from(["claim", "claim", "claim", "settle", "index", "index other", "recall", "fill"]),
        st.integers(0, 1),
        st.sampled_from(["a", "b", "undo:c"]),
        st.sampled_from(["user", "ana"]),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_keys_of_two_hosts_equal_those_of_a_dictionary(steps, tmp_path_factory):
    async def run():
        home = tmp_path_factory.mktemp("home")
        model = {}
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(open_sqlite(home))
            options = {"rotate_bytes": 3000, "index_interval": 1_000}
            hosts = [await stack.enter_async_context(Ledger(home / "ledger", store, **options)) for _ in range(2)]
            for kind, number, key, principal in steps:
                ledger = hosts[number]
                name = (key, "" if key.startswith("undo:") else principal)
                held = model.get(name)
                if kind == "claim":
                    effect = await claim(ledger, key, principal)
                    assert held is None or effect == held[0]
                    model.setdefault(name, [effect, None])
                elif kind == "settle" and held and held[1] is None:
                    held[1] = "done"
                    await settle(ledger, held[0], key)
                elif kind == "recall":
                    found = await ledger.earlier(key, principal)
                    assert (found and [found.effect, found.status]) == held
                elif kind == "fill":
                    await fill(ledger, 5)
                elif kind.startswith("index") and (home / "ledger").exists():
                    index = current_index(home / "ledger")
                    if kind == "index":
                        ledger._chain.keys.use(index)
                    else:
                        index.close()
            if hosts[0]._begun or hosts[1]._begun:
                assert (await verify(home / "ledger", store)).ok

    anyio.run(run)
