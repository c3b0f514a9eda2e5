"""The conformance class of stores."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import anyio
from sideband import Host, StoreConflict, StoreError
from sideband.store import Store, StoreSpec

from ._base import Conformance
from ._failing import fail
from ._stepping import Steps

_WRITERS, _WRITES = 4, 5
_KILLED_AFTER = 20
_KEYS = ("a", "a_b", "axb", "a%b", "a*b", "ä", "\x00", "\ud7ff\ue000\U0010ffff", "a" * 500, "/", "..")


class StoreConformance(Conformance):
    """The tests of a store: a plugin in the group ``sideband.v1.store``.

    In texts of ``config``, ``{store}`` stands for a name that is another one for each folder, such as of a schema: a
    store that keeps nothing in its folder needs it, since each test begins with an empty store.

    Attributes:
        survives_kill: whether what it has written survives SIGKILL, as the protocol demands.

    Example:
        >>> class TestSqlite(StoreConformance):
        ...     plugin = "store.sqlite"
    """

    kind = "store"
    survives_kill: ClassVar[bool] = True

    def test_documents_have_versions(self) -> None:
        """Check that versions begin at 1, grow by 1, and are checked by ``put`` and ``delete``."""

        async def check(store: Store) -> None:
            self._is("`get` of an unknown document", await store.get("k"), None)
            self._is("`delete` of an unknown document", await store.delete("k"), False)
            self._is("the first version", await store.put("k", {"n": 1}, version=0), 1)
            self._is("the second version", await store.put("k", {"n": 2}), 2)
            await self._conflicts(store.put("k", {"n": 3}, version=0), "`put` with another version")
            await self._conflicts(store.delete("k", version=1), "`delete` with another version")
            found = await store.get("k")
            self._is("the document", (dict(found.value), found.version) if found else None, ({"n": 2}, 2))
            self._is("`delete` with the version", await store.delete("k", version=2), True)
            self._is("the version after a deletion", await store.put("k", {}), 1)

        self._with_store(check)

    def test_keys_are_texts_of_any_characters(self) -> None:
        """Check that keys are compared exactly, prefixes too, and are sorted."""

        async def check(store: Store) -> None:
            stored = []
            for key in _KEYS:
                try:
                    await store.put(key, {"key": key})
                except StoreError:
                    continue  # it may refuse control characters, with a typed error
                stored.append(key)
            self._is("all keys", list(await store.keys()), sorted(stored))
            for prefix in ("a", "a_", "a%", "a*"):
                wanted = sorted(key for key in stored if key.startswith(prefix))
                self._is(f"the keys that begin with {prefix!r}", list(await store.keys(prefix)), wanted)

        self._with_store(check)

    def test_values_round_trip(self) -> None:
        """Check that a value is the same when it is read. What is not JSON is refused with a ``StoreError``."""

        async def check(store: Store) -> None:
            value = {
                "text": "ä\x00\U0001f600",
                "n": 2**53,
                "f": 0.1,
                "list": [None, True, {"a": []}],
                "": "x" * 100_000,
            }
            await store.put("k", value)
            found = await store.get("k")
            self._is("the value", dict(found.value) if found else None, value)
            wrong: Any
            for wrong in ({"n": float("nan")}, {"n": b"x"}, {"n": {1}}, [], None):
                try:
                    await store.put("wrong", wrong)
                except StoreError:
                    continue
                except Exception as error:  # noqa: BLE001  that is what is checked
                    self._wrong(f"{wrong!r} is refused with a `StoreError`", f"{type(error).__name__}: {error}")
                self._wrong(f"{wrong!r}, which is not JSON, is refused with a `StoreError`", "it is stored")

        self._with_store(check)

    def test_streams_are_numbered_from_zero(self) -> None:
        """Check that records of a stream have positions without gaps; a deleted stream begins at 0 again."""

        async def check(store: Store) -> None:
            self._is("the first position", await store.append("s", [{"n": 0}, {"n": 1}]), 0)
            self._is("the third position", await store.append("s", [{"n": 2}]), 2)
            self._is("the next position", await store.append("s", []), 3)
            self._is("another stream", await store.append("t", [{"n": 9}]), 0)
            records = [(one.position, one.value["n"]) for one in await store.read("s", start=1, limit=1)]
            self._is("`read` with `start` and `limit`", records, [(1, 1)])
            self._is("`delete_stream`", await store.delete_stream("s"), True)
            self._is("`delete_stream` again", await store.delete_stream("s"), False)
            self._is("the position in a new stream", await store.append("s", [{"n": 0}]), 0)
            self._is("the other stream", len(await store.read("t")), 1)

        self._with_store(check)

    def test_transactions_are_complete_or_have_no_effect(self) -> None:
        """Check that a transaction whose body raises or is cancelled changes nothing; one that ends changes all."""

        async def check(store: Store) -> None:
            async with store.transaction() as transaction:
                await transaction.put("kept", {"n": 1})
                await transaction.append("s", [{"n": 1}])
            for fault in (ZeroDivisionError, None):
                with anyio.CancelScope() as scope:
                    try:
                        async with store.transaction() as transaction:
                            await transaction.put("lost", {})
                            await transaction.delete("kept")
                            await transaction.delete_stream("s")
                            if fault is not None:
                                raise fault
                            scope.cancel()
                            await anyio.lowlevel.checkpoint()
                    except ZeroDivisionError:
                        pass
                self._is("the keys after a transaction that failed", list(await store.keys()), ["kept"])
                self._is("the records after it", len(await store.read("s")), 1)

        self._with_store(check)

    def test_concurrent_writers_lose_nothing(self) -> None:
        """Check that tasks that add to one document with its version, and append to one stream, lose no write."""

        async def check(store: Store) -> None:
            await store.put("counter", {"n": 0})

            async def add() -> None:
                for _ in range(_WRITES):
                    while True:
                        found = await store.get("counter")
                        assert found is not None  # noqa: S101  it was written above
                        try:
                            await store.put("counter", {"n": found.value["n"] + 1}, version=found.version)
                        except StoreConflict:
                            continue
                        break
                    await store.append("s", [{"n": 1}])

            async with anyio.create_task_group() as tasks:
                for _ in range(_WRITERS):
                    tasks.start_soon(add)
            found = await store.get("counter")
            self._is("the sum of all additions", found and found.value["n"], _WRITERS * _WRITES)
            self._is("the number of records", len(await store.read("s")), _WRITERS * _WRITES)

        self._with_store(check, deep=True)

    def test_writes_survive_a_kill(self) -> None:
        """Check that what was written before SIGKILL is there afterwards, and that nothing is torn."""
        if not self.survives_kill:
            return
        folder = self.new_folder("store")
        child = os.fork()
        if not child:
            try:
                self.run(lambda: self._write_and_die(folder))
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        self._is("how the writer ended", os.waitstatus_to_exitcode(status), -signal.SIGKILL)

        async def check(store: Store) -> None:
            found = await store.get("last")
            self._is("the last document", found and found.value["n"], _KILLED_AFTER - 1)
            self._is("the number of records", len(await store.read("s")), _KILLED_AFTER)
            self._is("what an open transaction wrote", await store.get("open"), None)
            await store.put("after", {})

        self._with_store(check, folder=folder)

    def test_cancellation_leaves_nothing_behind(self) -> None:
        """Check that a write that is cancelled wherever it waits has happened or has not, and the store works on."""

        async def check(store: Store) -> None:
            steps = Steps()

            async def write() -> None:
                async with store.transaction() as transaction:
                    await transaction.put("a", {})
                    await transaction.put("b", {})

            async def arrange() -> None:
                await store.delete("a")
                await store.delete("b")

            known: list[str] = []

            async def act() -> None:
                await steps.watch(write)()

            await self.cancel_everywhere("a transaction", steps, act, arrange=arrange, left=lambda: known)
            for number in range(1, steps.count + 1):
                await arrange()
                with anyio.CancelScope() as scope:
                    steps.count = 0
                    steps.on_suspend = lambda found: scope.cancel() if found == number else None  # noqa: B023
                    await act()
                steps.on_suspend = None
                keys = list(await store.keys())
                if keys not in ([], ["a", "b"]):
                    self._wrong("a cancelled transaction is complete or has no effect", f"it wrote {', '.join(keys)}")

        self._with_store(check)

    def test_sync_and_two_users_of_one_folder(self) -> None:
        """Check that two users of a store see what the other has written, and that it can be synced."""

        async def check(store: Store) -> None:
            await store.put("k", {"n": 1}, durable=False)
            try:
                job = store.unsynced()
                if job is not None:
                    await anyio.to_thread.run_sync(job)
                await store.sync()
            except Exception as error:  # noqa: BLE001  that is what is checked
                self._wrong("`unsynced` and `sync` sync the store", f"{type(error).__name__}: {error}")

        self._with_store(check, deep=True)

    async def exercise(self, host: Host) -> None:
        """Write and read through the host."""
        await host.store.put("sideband.conformance", {"n": 1})
        await host.store.get("sideband.conformance")
        await host.store.delete("sideband.conformance")

    async def _write_and_die(self, folder: Path) -> None:
        async with self._open(folder) as store:
            for number in range(_KILLED_AFTER):
                await store.append("s", [{"n": number}], durable=False)
                await store.put("last", {"n": number}, durable=False)
            async with store.transaction() as transaction:
                await transaction.put("open", {})
                os.kill(os.getpid(), signal.SIGKILL)

    @asynccontextmanager
    async def _open(self, folder: Path) -> AsyncIterator[Store]:
        spec = self._spec(folder)
        async with spec.open(folder) as store:
            yield store

    def _spec(self, folder: Path) -> StoreSpec:
        self.values["store"] = _name_of(folder)
        register, model = self.subject.value.sideband_stores, getattr(self.subject.value, "Config", None)
        given = {} if model is None else {"config": model.model_validate(self.fill(self.config))}
        found = [one for one in register(**given) if one.name == self.subject.name]
        if not found:
            self._wrong(f"`sideband_stores` returns a store `{self.subject.name}`", "it returns none")
        spec: StoreSpec = found[0]
        return spec

    def _with_store(
        self,
        check: Callable[[Store], Awaitable[None]],
        *,
        folder: Path | None = None,
        deep: bool = False,
        backends: int | None = None,
    ) -> None:
        async def main() -> None:
            chosen = self._current
            async with self._open(chosen) as store:
                if not isinstance(store, Store):
                    self._wrong("`open` yields a `Store`", f"it yields a {type(store).__name__}")
                await check(store)
                if deep:
                    await store.put("shared", {"n": 1})
                    async with self._open(chosen) as other:
                        self._is(
                            "a second user of the folder finds", await other.get("shared"), await store.get("shared")
                        )
                        await other.put("shared", {"n": 2})
                    found = await store.get("shared")
                    self._is("the first user then finds", found and dict(found.value), {"n": 2})

        for backend in self.backends[:backends]:
            self._current = folder or self.new_folder("store")
            self.run(main, backend=backend)

    async def _conflicts(self, write: Awaitable[Any], what: str) -> None:
        try:
            await write
        except StoreConflict:
            return
        except Exception as error:  # noqa: BLE001  that is what is checked
            self._wrong(f"{what} raises `StoreConflict`", f"{type(error).__name__}: {error}")
        self._wrong(f"{what} raises `StoreConflict`", "it succeeds")

    def _host_options(self, home: Path | None) -> dict[str, Any]:
        chosen = home or self.new_folder("home")
        self.values["store"] = _name_of(chosen)
        return super()._host_options(chosen)

    def _is(self, what: str, found: Any, wanted: Any) -> None:
        if found != wanted:
            self._wrong(f"{what}: {wanted!r}", f"{found!r}")

    def _wrong(self, expected: str, happened: str) -> Any:
        remedy = "read `sideband.store.Store`, which specifies it"
        fail(self.label, expected=expected, happened=happened, remedy=remedy)


def _name_of(folder: Path) -> str:
    return f"store_{sha256(os.fsencode(folder)).hexdigest()[:16]}"
