"""What a store must do, as a model of dictionaries and lists, against which histories are compared."""

import pytest
from hypothesis import strategies as st
from sideband import StoreConflict

KEYS = st.sampled_from(("", "a")) | st.text(st.sampled_from("ab/%_\\*?é\ud7ff\ue000\U0010ffff"), max_size=4)
VALUES = st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=5), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("put"), KEYS, VALUES, st.none() | st.integers(0, 3)),
    st.tuples(st.just("delete"), KEYS, st.none() | st.integers(0, 3)),
    st.tuples(st.just("keys"), KEYS),
    st.tuples(st.just("append"), KEYS, st.lists(VALUES, max_size=3)),
    st.tuples(st.just("read"), KEYS, st.integers(0, 3), st.none() | st.integers(0, 2)),
    st.tuples(st.just("delete_stream"), KEYS),
)


class Model:
    """What a store holds, as a dictionary of documents and one of streams."""

    def __init__(self):
        self.documents, self.streams = {}, {}

    def _check(self, key, version):
        found = self.documents.get(key, ({}, 0))[1]
        if version not in (None, found):
            raise StoreConflict(key)
        return found

    def put(self, key, value, version):
        found = self._check(key, version)
        self.documents[key] = (value, found + 1)
        return found + 1

    def delete(self, key, version):
        self._check(key, version)
        return self.documents.pop(key, None) is not None

    def keys(self, prefix):
        return tuple(sorted(key for key in self.documents if key.startswith(prefix)))

    def append(self, stream, values):
        records = self.streams.setdefault(stream, []) if values else self.streams.get(stream, [])
        records.extend(values)
        return len(records) - len(values)

    def read(self, stream, start, limit):
        records = list(enumerate(self.streams.get(stream, [])))[start:]
        return records if limit is None else records[:limit]

    def delete_stream(self, stream):
        return self.streams.pop(stream, None) is not None


async def act(on, name, *arguments):
    if name in ("put", "delete"):
        return await getattr(on, name)(*arguments[:-1], version=arguments[-1])
    if name == "read":
        stream, start, limit = arguments
        found = await on.read(stream, start=start, limit=limit)
        return [(one.position, one.value) for one in found]
    return await getattr(on, name)(*arguments)


HISTORIES = {
    "before": st.lists(STEPS, max_size=10),
    "steps": st.lists(STEPS, max_size=20),
    "together": st.booleans(),
}
"""The arguments of ``compare_with_model`` besides the store."""


async def compare_with_model(store, *, before, steps, together):
    """Check that a store does what the model does.

    Args:
        store: an open store, which is emptied.
        before: what is done first, so that there is data.
        steps: what is done then.
        together: whether that is one transaction.
    """
    for key in await store.keys():
        await store.delete(key)
    model = Model()
    streams = {step[1] for step in before + steps if step[0] in ("append", "read", "delete_stream")}

    async def check(on, steps):
        for name, *arguments in steps:
            try:
                expected = getattr(model, name)(*arguments)
            except StoreConflict:
                with pytest.raises(StoreConflict):
                    await act(on, name, *arguments)
                continue
            assert await act(on, name, *arguments) == expected, (name, arguments)

    await check(store, before)
    if together:
        async with store.transaction() as transaction:
            await check(transaction, steps)
    else:
        await check(store, steps)
    await check(store, [("keys", ""), *(("read", stream, 0, None) for stream in streams)])
    for key, (value, version) in model.documents.items():
        found = await store.get(key)
        assert (found.value, found.version) == (value, version)
    for stream in streams:
        await store.delete_stream(stream)
