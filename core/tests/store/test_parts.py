"""The part of a store that belongs to a plugin: nothing leads out of it, in any store."""

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sideband import StoreConflict
from sideband.errors import StoreError, StoreKeyInvalid
from sideband.store import Store, StorePart
from sideband_agent._memory_store import MemoryStore
from sideband_store_sqlite import open_sqlite

pytestmark = pytest.mark.anyio

NAMES = (
    "notes",
    "note",
    "notes/a",
    "notes/",
    "../notes",
    "..",
    ".",
    "",
    "%2F",
    "notes%2Fa",
    "\u00e9",
    "e\u0301",
    "a\nb",
    "/",
)
KEYS = (
    "..",
    "../other/a",
    "/",
    "//",
    "/etc/passwd",
    "a/../../b",
    "%2e%2e",
    "plugin/notes/a",
    "\u00e9",
    "e\u0301",
    "*",
    "a_b%",
    " ",
)
TEXTS = st.text(st.sampled_from("a./%_é\u0301\U0010ffff"), min_size=1, max_size=5)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=["sqlite", "memory"])
async def whole(request, tmp_path):
    """Each of our stores."""
    if request.param == "memory":
        yield MemoryStore()
        return
    async with open_sqlite(tmp_path) as store:
        yield store


def part(whole, name="notes"):
    return StorePart.of_plugin(lambda: whole, name)


async def test_part_is_a_store(whole):
    assert isinstance(part(whole), Store)


@pytest.mark.parametrize("key", KEYS)
async def test_key_of_a_part_stays_in_it_whatever_it_contains(whole, key):
    await whole.put("plugin/other/a", {"of": "other"})
    notes = part(whole)
    assert await notes.put(key, {"n": 1}) == 1
    await notes.append(key, [{"n": 2}])
    assert list(await whole.keys()) == sorted(["plugin/other/a", f"plugin/notes/{key}"])
    assert (await notes.get(key)).value == {"n": 1}
    assert [record.value for record in await notes.read(key)] == [{"n": 2}]
    assert await notes.keys() == [key]
    assert await notes.delete(key) is True
    assert await notes.delete_stream(key) is True
    assert list(await whole.keys()) == ["plugin/other/a"]


async def test_no_name_of_a_plugin_leads_into_the_part_of_another(whole):
    for name in NAMES:
        await part(whole, name).put("a", {"of": name})
        await part(whole, name).put("a/a", {"of": name})
        await part(whole, name).append("a", [{"of": name}])
    for name in NAMES:
        own = part(whole, name)
        assert await own.keys() == ["a", "a/a"]
        assert [(await own.get(key)).value for key in ("a", "a/a")] == [{"of": name}, {"of": name}]
        assert [record.value for record in await own.read("a")] == [{"of": name}]


@given(one=TEXTS, other=TEXTS, key=TEXTS, other_key=TEXTS)
def test_two_plugins_never_share_a_key(one, other, key, other_key):
    async def paths():
        whole = MemoryStore()
        for name, its_key in ((one, key), (other, other_key)):
            await part(whole, name).put(its_key, {})
        return await whole.keys()

    assert len(anyio.run(paths)) == (1 if (one, key) == (other, other_key) else 2)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("", "it is empty"),
        ("a\0b", "it contains a control character or a lone surrogate"),
        ("a\nb", "it contains a control character or a lone surrogate"),
        ("a\x9bb", "it contains a control character or a lone surrogate"),
        ("a\ud800", "it contains a control character or a lone surrogate"),
        ("é" * 513, "it has 1,026 bytes, which exceeds the limit of 1,024"),
        (b"a", "expected a text, got a bytes"),
        (None, "expected a text, got a NoneType"),
    ],
)
async def test_key_that_some_store_could_not_hold_is_refused_by_all_operations(key, problem):
    operations = {"get": (), "put": ({},), "delete": (), "append": ([{}],), "read": (), "delete_stream": ()}
    notes = part(MemoryStore())
    async with notes.transaction() as transaction:
        for one in (notes, transaction):
            for name, more in operations.items():
                with pytest.raises(StoreKeyInvalid) as caught:
                    await getattr(one, name)(key, *more)
                assert caught.value.code == "store.key"
                assert caught.value.message.endswith(problem)
    if key:
        with pytest.raises(StoreKeyInvalid):
            await notes.keys(key)


async def test_longest_key_is_accepted(whole):
    key = "é" * 512
    await part(whole).put(key, {})
    assert await part(whole).keys("é") == [key]


async def test_keys_are_relative_to_the_part(whole):
    await part(whole, "note").put("other", {})
    await part(whole, "notes").put("a/1", {})
    await part(whole, "notes").put("a/2", {})
    await part(whole, "notes").put("b", {})
    assert await part(whole, "notes").keys() == ["a/1", "a/2", "b"]
    assert await part(whole, "notes").keys("a/") == ["a/1", "a/2"]
    assert await part(whole, "note").keys() == ["other"]


async def test_transaction_sees_only_the_part_and_is_rolled_back(whole):
    notes = part(whole)
    await part(whole, "other").put("a", {"of": "other"})

    async def fail():
        async with notes.transaction() as transaction:
            assert await transaction.get("a") is None
            await transaction.put("a", {"n": 1})
            await transaction.append("s", [{}])
            assert await transaction.keys() == ["a"]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert (await notes.get("a"), len(await notes.read("s"))) == (None, 0)
    async with notes.transaction(durable=False) as transaction:
        await transaction.put("a", {"n": 2}, version=0)
        await transaction.append("s", [{"n": 3}])
        assert [record.value for record in await transaction.read("s")] == [{"n": 3}]
        assert await transaction.delete("a", version=1) is True
        assert await transaction.delete_stream("s") is True
    assert list(await whole.keys()) == ["plugin/other/a"]


async def test_conflict_names_the_key_of_the_part(whole):
    notes = part(whole)
    await notes.put("a", {})
    async with notes.transaction() as transaction:
        with pytest.raises(StoreConflict) as caught:
            await transaction.delete("a", version=2)
        assert caught.value.key == "a"
    for attempt in (notes.put("a", {}, version=3), notes.delete("a", version=3)):
        with pytest.raises(StoreConflict) as caught:
            await attempt
        assert (caught.value.key, caught.value.expected, caught.value.found) == ("a", 3, 1)
        assert caught.value.message == "`a` is at version 1, not 3"


@pytest.mark.parametrize("name", ["notes", 'é/"'])
async def test_error_about_a_value_names_the_key_of_the_part(tmp_path, name):
    def fails():
        return pytest.raises(StoreError, match=r"^value for 'a' is not valid JSON: expected an object, got a list$")

    async with open_sqlite(tmp_path) as store:
        notes = part(store, name)
        with fails() as caught:
            await notes.put("a", [1])
        assert caught.value.message == str(caught.value)
        with fails():
            await notes.append("a", [{}, [1]])
        async with notes.transaction() as transaction:
            with fails():
                await transaction.put("a", [1])
        assert await store.keys() == ()


async def test_part_passes_durability_on():
    asked = []

    class Recorder(MemoryStore):
        async def put(self, key, value, *, version=None, durable=True):
            asked.append(("put", durable))
            return await super().put(key, value, version=version)

        async def delete(self, key, *, version=None, durable=True):
            asked.append(("delete", durable))
            return await super().delete(key, version=version)

        async def append(self, stream, values, *, durable=True):
            asked.append(("append", durable))
            return await super().append(stream, values)

        async def delete_stream(self, stream, *, durable=True):
            asked.append(("delete_stream", durable))
            return await super().delete_stream(stream)

        def transaction(self, *, durable=True):
            asked.append(("transaction", durable))
            return super().transaction(durable=durable)

        async def sync(self):
            asked.append(("sync", True))

        def unsynced(self):
            return lambda: asked.append(("unsynced", True))

    notes = part(Recorder())
    for options in ({}, {"durable": False}):
        durable = options.get("durable", True)
        asked.clear()
        await notes.put("a", {}, **options)
        await notes.delete("a", **options)
        await notes.append("a", [{}], **options)
        await notes.delete_stream("a", **options)
        async with notes.transaction(**options):
            pass
        assert asked == [(name, durable) for name in ("put", "delete", "append", "delete_stream", "transaction")]
    asked.clear()
    await notes.sync()
    notes.unsynced()()
    assert asked == [("sync", True), ("unsynced", True)]
