"""Documents, versions, keys and streams, as specified by `sideband.store`."""

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband import StoreConflict, StoreError
from sideband_store_sqlite import ValueNotStorable, open_sqlite

pytestmark = pytest.mark.anyio

KEYS = st.text(st.sampled_from("ab/%_\\*?\x00é\ud7ff\ue000\U0010ffff"), max_size=4)
VALUES = st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=5), max_size=3)


@pytest.mark.parametrize("value", [{"n": float("nan")}, {"n": b"x"}, {"n": {1, 2}}], ids=["nan", "bytes", "set"])
async def test_error_for_a_value_that_is_not_json_names_its_key(store, value):
    with pytest.raises(ValueNotStorable, match="'a'"):
        await store.put("a", value)
    with pytest.raises(ValueNotStorable):
        await store.append("s", [{"good": 1}, value])
    assert await store.get("a") is None
    assert await store.read("s") == ()


@pytest.mark.parametrize("value", [[], [["a", 1]], "ab", None], ids=["list", "pairs", "text", "none"])
async def test_value_that_is_not_an_object_is_rejected(store, value):
    problem = f"value for 'a' is not valid JSON: expected an object, got a {type(value).__name__}"
    with pytest.raises(ValueNotStorable, match=problem):
        await store.put("a", value)
    with pytest.raises(ValueNotStorable, match=problem):
        await store.append("a", [value])
    assert (await store.get("a"), await store.read("a")) == (None, ())


async def test_lone_surrogate_in_a_key_is_rejected(store):
    with pytest.raises(ValueNotStorable):
        await store.put("\ud800", {})


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


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_using_the_store_inside_its_own_transaction_is_an_error(store):
    with anyio.fail_after(5):
        async with store.transaction():
            with pytest.raises(StoreError, match="inside its own transaction"):
                await store.get("a")


async def test_transaction_is_unusable_after_its_body(store):
    async with store.transaction() as transaction:
        pass
    with pytest.raises(StoreError, match="ended"):
        await transaction.put("a", {})
    assert await store.keys() == ()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), KEYS, VALUES, st.none() | st.integers(0, 3)),
            st.tuples(st.just("delete"), KEYS, st.none() | st.integers(0, 3)),
            st.tuples(st.just("keys"), KEYS),
            st.tuples(st.just("append"), KEYS, st.lists(VALUES, max_size=3)),
        ),
        max_size=20,
    )
)
async def test_store_behaves_like_a_dictionary_and_lists(tmp_path_factory, steps):
    documents, streams = {}, {}
    async with open_sqlite(tmp_path_factory.mktemp("property")) as store:
        for name, key, *rest in steps:
            found = documents.get(key, ({}, 0))[1]
            if name == "keys":
                assert list(await store.keys(key)) == sorted(known for known in documents if known.startswith(key))
            elif name == "append":
                assert await store.append(key, rest[0]) == len(streams.setdefault(key, []))
                streams[key] += rest[0]
            elif rest[-1] not in (None, found):
                with pytest.raises(StoreConflict):
                    await getattr(store, name)(key, *rest[:-1], version=rest[-1])
            elif name == "put":
                assert await store.put(key, rest[0], version=rest[1]) == found + 1
                documents[key] = (rest[0], found + 1)
            else:
                assert await store.delete(key, version=rest[0]) is (key in documents)
                documents.pop(key, None)
        for key, (value, version) in documents.items():
            stored = await store.get(key)
            assert (stored.value, stored.version) == (value, version)
        for key, values in streams.items():
            assert [record.value for record in await store.read(key)] == values
