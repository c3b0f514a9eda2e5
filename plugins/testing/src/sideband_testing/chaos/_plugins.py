"""Plugins that are faulty on purpose."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sideband_store_sqlite.plugin
from attrs import define, evolve
from sideband import OpFamily, Plugin, StoreError
from sideband.hooks import hookimpl
from sideband.store import Document, Record, Store, StoreSpec, Transaction

from ..conformance._subject import registering, wrapped
from ._faults import Fault


def faulty_hook(hook: str, fault: Fault, *, kind: str = "hook", name: str = "chaos") -> Plugin:
    """Return a plugin that implements one hook, and misbehaves.

    Args:
        hook: the name of the hook, such as ``input``.
        fault: what it does.
        kind: ``hook`` or ``guard``.
        name: the name of the plugin.

    Example:
        >>> faulty_hook("input", WaitForever(), name="slowpoke").name
        'slowpoke'
    """

    async def implementation(event: Any) -> None:
        del event
        await fault()

    implementation.__name__ = hook
    marked = hookimpl(implementation)
    value = type("Chaos", (), {hook: staticmethod(marked)}) if kind == "guard" else SimpleNamespace(**{hook: marked})
    return Plugin(kind, name, value)


def faulty_op(plugin: Plugin, op: str, fault: Fault) -> Plugin:
    """Return the plugin of an op family, one of whose ops misbehaves before it does anything.

    Args:
        plugin: the plugin.
        op: the name of the op.
        fault: what it does first.
    """

    def before(handler: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(handler)
        async def faulty(params: Any, ctx: Any) -> Any:
            await fault()
            return await handler(params, ctx)

        return faulty

    def change(family: OpFamily) -> OpFamily:
        ops = (evolve(spec, handler=before(spec.handler)) if spec.name == op else spec for spec in family.ops)
        return evolve(family, ops=tuple(ops))

    return wrapped(plugin, {"sideband_ops": registering(plugin.value.sideband_ops, change)})


def faulty_store(*, at: int, error: Exception | None = None) -> Plugin:
    """Return the store `sqlite`, whose writes fail from the n-th on, as on a full disk.

    Args:
        at: the number of the first write that fails. It writes nothing.
        error: what it raises; by default a ``StoreError`` about a full disk.
    """
    full = OSError(errno.ENOSPC, "No space left on device")
    failure = error if error is not None else StoreError(f"cannot write: {full.strerror}", hint="free some space")
    failure.__cause__ = full if error is None else error.__cause__

    @asynccontextmanager
    async def open_faulty(folder: Path) -> AsyncIterator[Store]:
        (spec,) = sideband_store_sqlite.plugin.sideband_stores()
        async with spec.open(folder) as store:
            yield _FaultyStore(store, at, failure)

    value = SimpleNamespace(sideband_stores=lambda: [StoreSpec("sqlite", open_faulty)])
    return Plugin("store", "sqlite", value, "sideband-testing")


@define
class _FaultyStore:
    """A store whose writes fail from the n-th on."""

    _store: Store
    _at: int
    _error: Exception
    _writes: int = 0

    def _count(self) -> None:
        self._writes += 1
        if self._writes >= self._at:
            raise self._error

    async def get(self, key: str) -> Document | None:
        return await self._store.get(key)

    async def keys(self, prefix: str = "") -> Sequence[str]:
        return await self._store.keys(prefix)

    async def read(self, stream: str, *, start: int = 0, limit: int | None = None) -> Sequence[Record]:
        return await self._store.read(stream, start=start, limit=limit)

    async def put(self, key: str, value: Mapping[str, Any], *, version: int | None = None, durable: bool = True) -> int:
        self._count()
        return await self._store.put(key, value, version=version, durable=durable)

    async def delete(self, key: str, *, version: int | None = None, durable: bool = True) -> bool:
        self._count()
        return await self._store.delete(key, version=version, durable=durable)

    async def append(self, stream: str, values: Sequence[Mapping[str, Any]], *, durable: bool = True) -> int:
        self._count()
        return await self._store.append(stream, values, durable=durable)

    async def delete_stream(self, stream: str, *, durable: bool = True) -> bool:
        self._count()
        return await self._store.delete_stream(stream, durable=durable)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        async with self._store.transaction(durable=durable) as transaction:
            yield transaction
            self._count()  # so that the transaction is rolled back

    async def sync(self) -> None:
        await self._store.sync()

    def unsynced(self) -> Callable[[], None] | None:
        return self._store.unsynced()
