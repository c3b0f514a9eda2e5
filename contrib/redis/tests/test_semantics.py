"""Documents, versions, keys and streams, as specified by `sideband.store`, and what others do at the same time."""

import runpy
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from sideband import StoreConflict, StoreError
from sideband_redis import RedisValueError, open_redis

pytestmark = pytest.mark.anyio

MODEL = runpy.run_path(str(Path(__file__).parents[3] / "tests" / "shared_stores" / "model.py"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(**MODEL["HISTORIES"])
async def test_store_behaves_like_a_dictionary_and_lists(store, **history):
    await MODEL["compare_with_model"](store, **history)


@pytest.mark.parametrize("value", [{"n": float("nan")}, {"n": b"x"}, [], [["a", 1]], None], ids=repr)
async def test_error_for_a_value_that_is_not_an_object_of_json_names_its_key(store, value):
    for write in (store.put("a", value), store.append("a", [value])):
        with pytest.raises(RedisValueError, match="'a'"):
            await write
    assert (await store.get("a"), await store.read("a")) == (None, ())


async def test_value_that_is_too_large_for_the_server_is_rejected(store):
    with pytest.raises(RedisValueError, match="more than 100,000,000"):
        await store.put("a", {"text": "x" * 100_000_000})
    assert await store.get("a") is None


async def test_key_with_a_lone_surrogate_is_rejected(store):
    for use in (store.put, store.append):
        with pytest.raises(RedisValueError):
            await use("\ud800", {})
    for use in (store.get, store.read, store.keys):
        with pytest.raises(RedisValueError):
            await use("\ud800")


@pytest.mark.parametrize("key", ["a\x00b", "x" * 100_000, "a\r\nb", ""], ids=["null", "long", "lines", "empty"])
async def test_other_keys_are_texts_of_any_characters(store, key):
    await store.put(key, {"n": 1})
    await store.append(key, [{"n": 2}])
    assert await store.keys(key) == (key,)
    assert (await store.get(key)).value == {"n": 1}
    assert [one.value for one in await store.read(key)] == [{"n": 2}]


@pytest.mark.parametrize("value", [2**70, -(2**63), 1e300, 5e-324, 0.1 + 0.2, -0.0, "\x00\r\n$-1", "7:{}"], ids=repr)
async def test_values_are_read_as_they_were_written(store, value):
    await store.put("a", {"value": value})
    await store.append("a", [{"value": value}] * 2_500)
    assert repr((await store.get("a")).value) == repr({"value": value})
    assert repr([one.value for one in await store.read("a")]) == repr([{"value": value}] * 2_500)


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


async def test_stream_that_a_transaction_deletes_begins_again(store):
    await store.append("s", [{"n": 1}, {"n": 2}])
    async with store.transaction() as transaction:
        assert await transaction.append("s", [{"n": 3}]) == 2
        assert await transaction.delete_stream("s")
        assert await transaction.append("s", [{"n": 4}, {"n": 5}]) == 0
        assert [one.value["n"] for one in await transaction.read("s", start=1)] == [5]
    assert [one.value["n"] for one in await store.read("s")] == [4, 5]
    async with store.transaction() as transaction:
        await transaction.delete_stream("s")
    assert await store.read("s") == ()


async def test_transaction_is_unusable_after_its_body(store):
    async with store.transaction() as transaction:
        pass
    with pytest.raises(StoreError, match="the transaction has ended") as caught:
        await transaction.put("a", {})
    assert "inside its `async with` block" in caught.value.hint
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


async def test_hosts_that_open_an_empty_server_at_the_same_time_all_succeed(config):
    async def use(number):
        async with open_redis(config()) as store:
            await store.append("s", [{"n": number}])

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(use, number)
    async with open_redis(config()) as store:
        assert {one.value["n"] for one in await store.read("s")} == set(range(6))


async def test_prefixes_are_separate_stores(config, prefix):
    async with open_redis(config()) as one, open_redis(config(prefix=f"{prefix}_b")) as other:
        await one.put("a", {})
        assert await one.try_lock("lock")
        assert await other.keys() == ()
        assert await other.try_lock("lock")


async def test_many_tasks_share_a_few_connections(config):
    async with open_redis(config(max_connections=3)) as store:

        async def use(number):
            await store.put(f"{number:04}", {"n": number})
            assert (await store.get(f"{number:04}")).value == {"n": number}

        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(use, number)
        assert len(await store.keys()) == 300
