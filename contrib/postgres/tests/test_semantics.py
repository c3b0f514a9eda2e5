"""Documents, versions, keys and streams, as specified by `sideband.store`, and what others do at the same time."""

import runpy
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from sideband import StoreConflict, StoreError
from sideband_postgres import PostgresValueError, open_postgres

pytestmark = pytest.mark.anyio

MODEL = runpy.run_path(str(Path(__file__).parents[3] / "tests" / "shared_stores" / "model.py"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**MODEL["HISTORIES"])
async def test_store_behaves_like_a_dictionary_and_lists(store, **history):
    await MODEL["compare_with_model"](store, **history)


@pytest.mark.parametrize("value", [{"n": float("nan")}, {"n": b"x"}, [], [["a", 1]], None], ids=repr)
async def test_error_for_a_value_that_is_not_an_object_of_json_names_its_key(store, value):
    for write in (store.put("a", value), store.append("a", [value])):
        with pytest.raises(PostgresValueError, match="'a'"):
            await write
    assert (await store.get("a"), await store.read("a")) == (None, ())


@pytest.mark.parametrize("key", ["\ud800", "a\x00b", "x" * 2_001], ids=["surrogate", "null", "long"])
async def test_key_that_cannot_be_stored_is_rejected(store, key):
    for use in (store.put(key, {}), store.get(key), store.append(key, [{}]), store.read(key), store.keys(key)):
        with pytest.raises(PostgresValueError):
            await use


async def test_longest_key_is_stored_even_if_it_cannot_be_compressed(store):
    key = "".join(chr(0x20 + (number * number * 7919) % 95) for number in range(2_000))
    await store.put(key, {})
    await store.append(key, [{}])
    assert await store.keys() == (key,)


async def test_lone_surrogate_in_a_value_is_stored(store):
    await store.put("a", {"text": "\ud800"})
    assert (await store.get("a")).value == {"text": "\ud800"}


async def test_conflict_can_be_handled_inside_a_transaction(store):
    await store.put("a", {"n": 1})
    async with store.transaction() as transaction:
        with pytest.raises(StoreConflict):
            await transaction.put("a", {"n": 2}, version=0)
        await transaction.put("b", {"n": 2})
    assert await store.keys() == ("a", "b")


async def test_transaction_is_unusable_after_its_body(store):
    async with store.transaction() as transaction:
        pass
    with pytest.raises(StoreError, match="ended"):
        await transaction.put("a", {})
    assert await store.keys() == ()


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize("read", ["document", "stream"])
async def test_what_a_transaction_has_read_is_not_changed_by_others_before_it_ends(store, read):
    await store.put("a", {"n": 0})
    await store.append("a", [{"n": 0}])

    async def add():
        async with store.transaction() as transaction:
            if read == "document":
                found = await transaction.get("a")
                await transaction.put("a", {"n": found.value["n"] + 1})
            else:
                found = await transaction.read("a")
                await transaction.append("a", [{"n": found[-1].value["n"] + 1}])

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(add)
    found = await store.get("a") if read == "document" else (await store.read("a"))[-1]
    assert found.value == {"n": 8}


async def test_stream_that_is_deleted_while_others_append_has_no_gap(store):
    async def append():
        for _ in range(20):
            await store.append("s", [{}, {}])

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(append)
        for _ in range(10):
            await store.delete_stream("s")
    found = [one.position for one in await store.read("s")]
    assert found == list(range(len(found)))
    assert await store.append("s", []) == len(found)


async def test_hosts_that_open_an_empty_database_at_the_same_time_all_succeed(config):
    async def use(number):
        async with open_postgres(config()) as store:
            await store.append("s", [{"n": number}])

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(use, number)
    async with open_postgres(config()) as store:
        assert {one.value["n"] for one in await store.read("s")} == set(range(6))


async def test_schemas_are_separate_stores(config, schema):
    async with open_postgres(config()) as one, open_postgres(config(schema=f"{schema}_b")) as other:
        await one.put("a", {})
        assert await one.try_lock("lock")
        assert await other.keys() == ()
        assert await other.try_lock("lock")


async def test_many_tasks_share_a_few_connections(config):
    async with open_postgres(config(max_connections=3)) as store:

        async def use(number):
            await store.put(f"{number:04}", {"n": number})
            assert (await store.get(f"{number:04}")).value == {"n": number}

        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(use, number)
        assert len(await store.keys()) == 300
