"""The ledger as the broker uses it: intents before effects, outcomes after them, and what a crash left open."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio import to_thread

from ..store import Store
from ._chain import Chain
from ._commit import GroupCommit
from ._entries import Intent, Outcome, intent_fields, note_fields, outcome_fields
from ._errors import LedgerClosed, LedgerError
from ._head import load_head, save_head
from ._hosts import DeadHost, HostFile, Mark, adopt_dead_hosts, find_unsettled, is_alive, new_host_id
from ._lines import Head
from ._lock import held

_log = logging.getLogger("sideband.ledger")
_MEBIBYTE = 1024 * 1024
_LONGEST_CLOSE = 5.0


class Ledger:
    """A host's end of the ledger in a folder, which several hosts may share. Used as ``async with``.

    Nothing is written, and no folder made, before the first entry; that one is preceded by an ``open`` line. Entries
    are in the file when a method returns, so they outlive the process; durable ones are on the disk. The head goes to
    the store in the background, at most every ``head_interval`` seconds and when the ledger is closed, each time
    after the file was synced. So what was cut off is found, except lines of the last moments before a crash.

    Args:
        folder: where the segments are; made if missing, readable by this user only.
        store: keeps the head.
        rotate_bytes: a segment that has reached this size is followed by a new one.
        head_interval: seconds between two writes of the head.
        lock_timeout: seconds to wait for another host that is writing.

    Example:
        >>> async with Ledger(home / "ledger", store) as ledger:
        ...     effect = ledger.new_effect_id()
        ...     await ledger.intent(Intent(effect=effect, op="http.get"), durable=False)
        ...     await ledger.outcome(Outcome(effect=effect, op="http.get", status="done", ms=12.5))
    """

    def __init__(
        self,
        folder: Path,
        store: Store,
        *,
        rotate_bytes: int = 64 * _MEBIBYTE,
        head_interval: float = 0.25,
        lock_timeout: float = 10.0,
    ) -> None:
        self.folder = folder
        self.host = new_host_id()
        self._store = store
        self._head_interval = head_interval
        self._lock_timeout = lock_timeout
        self._chain = Chain(folder, self.host, rotate_bytes)
        self._commit = GroupCommit(self._chain)
        self._effects = 0
        self._running: dict[str, Head] = {}  # where the line of each intent begins: the head before it
        self._adopted: list[DeadHost] = []
        self._file: HostFile | None = None
        self._beginning = anyio.Lock()
        self._changed = anyio.Event()
        self._entered = False
        self._begun = False

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._keep_head)
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered = False
        self._tasks.cancel_scope.cancel()
        try:
            # The body's exception is none of the background task's business, and would come back in a group.
            await self._tasks.__aexit__(None, None, None)
        finally:
            with anyio.CancelScope(shield=True):
                await self._finish()

    def new_effect_id(self) -> str:
        """An id that no other effect of any host has."""
        self._effects += 1
        return f"{self.host}-{self._effects}"

    async def register(self) -> None:
        """Let other hosts see that this one lives, if no entry has done so yet."""
        if not self._begun:
            await self._begin()

    def is_alive(self, effect: str) -> bool:
        """Whether the host that gave this id to an effect still runs."""
        host = effect.rpartition("-")[0]
        return host == self.host or is_alive(self.folder, host)

    async def intent(self, entry: Intent, *, durable: bool) -> None:
        """Record what is about to happen. When this returns, the effect may happen.

        Args:
            entry: what is recorded.
            durable: whether it must be on disk, not only in the file.

        Raises:
            LedgerUnwritable: it could not be recorded: the effect must not happen.
        """
        if not self._begun:
            await self._begin()
        self._running[entry.effect] = self._chain.head
        try:
            await self._append(intent_fields(entry), durable=durable)
        except BaseException:
            # Cancelled, or not written: whoever asked will not run it. If a line is there, it stays without outcome.
            self._running.pop(entry.effect, None)
            raise

    async def note(self, effect: str, op: str, note: Mapping[str, Any]) -> None:
        """Record what an op notes of its effect before it changes anything. On disk when this returns.

        Raises:
            LedgerUnwritable: it could not be recorded: nothing must be changed.
        """
        await self._append(note_fields(effect, op, note), durable=True)

    async def outcome(self, entry: Outcome, *, durable: bool = False) -> None:
        """Record how a dispatch ended.

        Raises:
            LedgerUnwritable: it could not be recorded; its intent, if it has one, stays open.
        """
        if not self._begun:
            await self._begin()
        await self._append(outcome_fields(entry, follows=entry.effect in self._running), durable=durable)
        self._running.pop(entry.effect, None)
        if self._adopted:
            self._settle(entry.effect)

    async def orphans(self) -> Sequence[Intent]:
        """The intents without outcome of hosts that are gone, oldest first.

        They are this host's to settle from now on: no other host gets them while it lives. Write an outcome for each.
        """
        self._check_open()
        if not (self.folder / "hosts").is_dir():
            return ()
        async with held(self._chain.lock, self._lock_timeout):
            found = adopt_dead_hosts(self.folder)
        self._adopted += found
        for dead in found:
            await to_thread.run_sync(find_unsettled, self.folder, dead)
            if not dead.unsettled:
                self._adopted.remove(dead)
                dead.file.close(remove=True)
        return tuple(intent for dead in self._adopted for intent in dead.unsettled.values())

    async def sync(self) -> None:
        """Bring everything written so far to disk."""
        await self._commit.through(self._chain.written)

    def _check_open(self) -> None:
        if not self._entered:
            raise LedgerClosed

    def _settle(self, effect: str) -> None:
        for dead in self._adopted:
            if dead.settle(effect) and not dead.unsettled:
                self._adopted.remove(dead)
                dead.file.close(remove=True)
                return

    async def _begin(self) -> None:
        """Register this host and write its ``open`` line, once."""
        self._check_open()
        async with self._beginning:
            if self._begun:
                return
            if self._file is None:
                await self._register()
            await self._write_locked([{"kind": "open", "host": self.host, "pid": os.getpid()}])
            self._begun = True
            with suppress(OSError):  # then all would have to be read after a crash
                self._mark(self._chain.head)

    async def _register(self) -> None:
        stored = await load_head(self._store)
        self._chain.prepare()
        if stored is None:
            # Before the first line, so that lines without a stored head always mean that it was lost.
            self._chain.headless = True
            await save_head(self._store, self._chain.head)
        else:
            self._chain.head = stored
        async with held(self._chain.lock, self._lock_timeout):
            self._file = HostFile.create(self.folder, self.host)

    async def _append(self, entry: Mapping[str, Any], *, durable: bool) -> None:
        self._check_open()
        if not self._chain.append((entry,)):
            await self._write_locked((entry,))
        self._changed.set()
        if durable:
            await self._commit.through(self._chain.written)

    async def _write_locked(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Write them once another host, which is writing, is done."""
        async with held(self._chain.lock, self._lock_timeout):
            self._chain.append_locked(entries)

    async def _keep_head(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            await self._save_head()
            await anyio.sleep(self._head_interval)

    async def _save_head(self) -> None:
        """Sync the file, and let the store and this host's file say how far it is. A failure is reported only."""
        head = self._chain.head
        try:
            self._mark(head)
            await self.sync()
            await save_head(self._store, head, replaces=self._chain.lost)
        except Exception as error:  # noqa: BLE001 -- the store is a plugin; the next head tries again
            _log.warning("the head of the ledger could not be stored: %s", error)

    def _mark(self, head: Head) -> None:
        """Note where the oldest effect still running begins, for whoever looks after this host if it dies."""
        if self._file is not None:
            oldest = next(iter(self._running.values()), head)
            self._file.mark(Mark(oldest.segment, oldest.size))

    async def _finish(self) -> None:
        try:
            if self._begun:
                await self._write_locked([{"kind": "close", "host": self.host}])
        except LedgerError as error:
            _log.warning("the end of the ledger could not be written: %s", error)
        try:
            if self._begun:
                with anyio.move_on_after(_LONGEST_CLOSE):
                    await self._save_head()
        finally:
            self._release()

    def _release(self) -> None:
        for dead in self._adopted:
            dead.file.close(remove=False)
        if self._file is not None:
            self._file.close(remove=not self._running)
        self._chain.close()
