"""The ledger's interface for the broker: intents before effects, outcomes after them, and recovery after a crash."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio import to_thread

from ..errors import safe_text
from ..ops import Level
from ..state import sync_folder
from ..store import Store
from ._chain import Chain
from ._commit import LedgerCommit
from ._copies import copy_lines
from ._drafts import intent_draft, note_draft, outcome_draft
from ._entries import EffectRecord, Intent, Outcome
from ._errors import LedgerClosed, LedgerError, LedgerIndexFailed, LedgerUnwritable
from ._head import head_key, identifier_of, load_head, save_head
from ._hosts import DeadHost, HostFile, adopt_dead_hosts, find_unsettled, is_alive, new_host_id
from ._index import Index, open_index
from ._keys import KeysBehind, current_index
from ._lines import Draft, Head, draft
from ._lock import held
from ._segments import Mark, segment_numbers

_log = logging.getLogger("sideband.ledger")
_MEBIBYTE = 1024 * 1024
_MAX_CLOSE_SECONDS = 5.0
_MAX_TRIES = 5
# A batch takes some milliseconds of a thread that shares the interpreter with the event loop.
_MAX_UNINDEXED = 10_000
_INDEX_LINES = 500
_INDEX_PAUSE = 0.02
_Answer = TypeVar("_Answer")


class Ledger:
    """A host's connection to the ledger in a folder, which several hosts may share. Use it with ``async with``.

    The folder is created with the first entry, which is preceded by an ``open`` line. When a method returns, the entry
    is written to the file, so it survives a crash of the process. Durable entries are also synced to disk; an outcome
    that is due is synced at the latest before the next effect that may leave the process. The head is stored in the
    background after a sync of the file, every ``head_interval`` seconds if there are entries, and when the ledger is
    closed. A truncated ledger is therefore detected, except for lines written in the last moments before a crash.

    Args:
        folder: the folder of the segments. It is created if necessary, with access for this user only.
        store: the store that holds the head.
        rotate_bytes: the size in bytes at which a new segment is started.
        head_interval: the time between two syncs in the background, each followed by a write of the head, in seconds.
        index_interval: the minimum time between two updates of the index in the background, in seconds.
        lock_timeout: the maximum time to wait for another host that is writing, in seconds.
        closed: returns whether the values of some secrets are unknown. Entries then have ``secrets: closed``.

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
        head_interval: float = 1.0,
        index_interval: float = 1.0,
        lock_timeout: float = 10.0,
        closed: Callable[[], object] = bool,
    ) -> None:
        self.folder = folder
        self.host = new_host_id()
        self._store = store
        self._head_interval = head_interval
        self._index_interval = index_interval
        self._lock_timeout = lock_timeout
        self._closed = closed
        self._chain = Chain(folder, self.host, rotate_bytes)
        self._commit = LedgerCommit(self._chain, store)
        self._effects = 0
        self._due = 0  # the number of appends that must be on disk before the next effect
        self._running: dict[str, Head] = {}  # the head before the intent of each running effect
        self._adopted: list[DeadHost] = []
        self._file: HostFile | None = None
        self._beginning = anyio.Lock()
        self._changed = anyio.Event()
        self._entered = False
        self._begun = False

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._keep_head)
        self._tasks.start_soon(self._keep_index)
        self._entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered = False
        self._tasks.cancel_scope.cancel()
        try:
            # Do not pass the body's exception: the task group would wrap it in an exception group.
            await self._tasks.__aexit__(None, None, None)
        finally:
            with anyio.CancelScope(shield=True):
                await self._finish()

    def new_effect_id(self) -> str:
        """Return an effect id that is unique across all hosts."""
        self._effects += 1
        return f"{self.host}-{self._effects}"

    def is_alive(self, effect: str) -> bool:
        """Return whether the host that created this effect id is still running."""
        host = effect.rpartition("-")[0]
        return host == self.host or is_alive(self.folder, host)

    def is_running(self, effect: str) -> bool:
        """Return whether this host has written an intent for the effect, but no outcome yet."""
        return effect in self._running

    async def intent(
        self, entry: Intent, *, durable: bool, unless: Callable[[EffectRecord | None], _Answer | None] | None = None
    ) -> _Answer | None:
        """Record an effect before it happens. The effect may happen only after this method has returned ``None``.

        Outcomes that are due are on disk then, unless the level of the effect is ``SAFE``: nothing leaves the process.

        Args:
            entry: the intent.
            durable: whether to sync the entry to disk.
            unless: called with the record of the last effect with the same key, if any, while no host can write. If it
                returns an answer or raises, the intent is not written.

        Returns:
            The answer of ``unless``, or ``None`` if the intent was written.

        Raises:
            LedgerUnwritable: if the entry, or an outcome that is due, could not be written. The effect must not happen.
                If ``is_running``, only the sync has failed: write an outcome.
        """
        if not self._begun:
            await self._begin()
        line = intent_draft(entry)
        self._running[entry.effect] = self._chain.head
        answer = None
        try:
            if unless is None or entry.key is None:
                await self._write(line)
            else:
                answer = await self._claim(line, entry.key, entry.origin.principal, unless)
        except BaseException:
            del self._running[entry.effect]
            raise
        if answer is not None:
            del self._running[entry.effect]
            return answer
        if durable:
            await self.sync()
        elif self._commit.synced < self._due and entry.level is not Level.SAFE:
            await self._commit.through(self._due)
        return None

    async def earlier(self, key: str, principal: str) -> EffectRecord | None:
        """Return the record of the last effect with this key, or ``None``. Another host may just be writing one.

        Args:
            key: the idempotency key.
            principal: the principal, which has its own keys.

        Raises:
            LedgerIndexFailed: if the index is needed and cannot be used.
        """
        self._check_open()

        async def find() -> EffectRecord | None:
            keys, head = self._chain.keys, self._chain.head
            if keys.behind is None:
                keys.behind = Mark(head.segment, head.size)
            keys.read()
            return keys.find(key, principal)

        return await self._with_keys(find)

    async def note(self, effect: str, op: str, note: Mapping[str, Any]) -> None:
        """Record a note that an op makes before it changes anything. The note is synced to disk.

        Raises:
            LedgerUnwritable: if the note could not be written. The op must not change anything.
        """
        await self._write(note_draft(effect, op, note))
        await self.sync()

    async def outcome(self, entry: Outcome, *, due: bool = False) -> None:
        """Record the outcome of a dispatch.

        Args:
            entry: the outcome.
            due: whether the entry must be on disk before anything that depends on it leaves the process: before the
                next effect, or before an answer to a person, for which the caller calls ``sync``.

        Raises:
            LedgerUnwritable: if the outcome could not be written. The intent, if any, remains without an outcome.
        """
        if not self._begun:
            await self._begin()
        await self._write(outcome_draft(entry, follows=entry.effect in self._running))
        self._note_outcome(entry, due=due)

    def outcome_now(self, entry: Outcome, *, due: bool = False) -> bool:
        """Record an outcome like ``outcome``, but without waiting. Return ``False`` if another host holds the lock.

        A caller that must not be cancelled needs no shield for it.
        """
        if not self._begun or not self._append(outcome_draft(entry, follows=entry.effect in self._running)):
            return False
        self._note_outcome(entry, due=due)
        return True

    def _note_outcome(self, entry: Outcome, *, due: bool) -> None:
        if due:
            self._due = self._chain.written
        self._running.pop(entry.effect, None)
        for dead in self._adopted:
            dead.unsettled.pop(entry.effect, None)

    async def load(self, fields: Mapping[str, Any], *, now: bool = True) -> None:
        """Record the load of a plugin. If it cannot be written now, it is written before any other entry.

        So no effect happens without it, and a host can still be opened, to repair what is wrong.

        Args:
            fields: the plugin and its package.
            now: whether to write it now, or only before the next entry, if there is one.
        """
        line = draft({"kind": "load", "host": self.host, **fields})
        if not now or self._chain.is_waiting:  # don't try in vain again, which may take a while
            self._chain.write_first(line)
            return
        try:
            if not self._begun:
                await self._begin()
            await self._write(line)
        except Exception as error:  # noqa: BLE001  the store, which is a plugin, may raise anything
            self._chain.write_first(line)
            _log.warning("the loads of plugins are not recorded yet: %s", safe_text(error))

    async def orphans(self) -> Sequence[Intent]:
        """Adopt the unsettled effects of dead hosts, and return their intents, oldest first.

        The caller must write an outcome for each. No other host gets them while this host is running.
        """
        self._check_open()
        if not (self.folder / "hosts").is_dir():
            return ()
        async with held(self._chain.lock, self._lock_timeout):
            found = adopt_dead_hosts(self.folder)
        try:
            for dead in found:
                await to_thread.run_sync(find_unsettled, self.folder, dead)
        except BaseException:
            for dead in found:
                dead.file.close(remove=False)
            raise
        self._adopted += found
        return tuple(intent for dead in self._adopted for intent in dead.unsettled.values())

    def ended(self) -> Sequence[EffectRecord]:
        """Return the last effects of the adopted hosts with a key and an outcome, oldest first. See ``orphans``."""
        return tuple(record for dead in self._adopted for record in dead.ended)

    async def sync(self) -> None:
        """Sync everything written so far to disk, in the ledger and in the store."""
        await self._commit.through(self._chain.written)
        await self._store.sync()

    def _check_open(self) -> None:
        if not self._entered:
            raise LedgerClosed

    async def _begin(self) -> None:
        """Register this host and write its ``open`` line, once."""
        self._check_open()
        async with self._beginning:
            if self._begun:
                return
            if self._file is None:
                await self._register()
            await self._write_own("open", pid=os.getpid())
            self._begun = True
            with suppress(OSError):  # without a mark, recovery reads the whole ledger
                self._mark(self._oldest(self._chain.head))

    async def _register(self) -> None:
        self._chain.prepare()
        async with held(self._chain.lock, self._lock_timeout):
            self._head_key = head_key(self.folder, self._store, create=True)
        stored = await load_head(self._store, self._head_key)
        if stored is None:
            # Store a head before the first line, so that lines without a stored head always mean that it was lost.
            self._chain.headless = True
            await save_head(self._store, self._head_key, self._chain.head)
        else:
            self._chain.head = stored
        async with held(self._chain.lock, self._lock_timeout):
            self._file = HostFile.create(self.folder, self.host)
        # Recovery finds the effects of this host through its file, and a new home by the entries of its parents.
        created = [self.folder / "hosts"]
        if not segment_numbers(self.folder):
            created += [self.folder, *self.folder.parents[:2]]
        try:
            await to_thread.run_sync(_sync_folders, created)
        except OSError as error:
            raise LedgerUnwritable(self.folder, error) from error

    async def _write(self, entry: Draft, unless: Callable[[], bool] | None = None) -> None:
        if not self._append(entry, unless):
            async with held(self._chain.lock, self._lock_timeout):
                self._append(entry, unless)  # it takes the lock again, which succeeds

    def _append(self, entry: Draft, unless: Callable[[], bool] | None = None) -> bool:
        """Write an entry without waiting, or return ``False`` if another host holds the lock."""
        self._check_open()
        if self._closed():
            entry = entry._replace(middle=f'{entry.middle}"secrets":"closed",')
        if not self._chain.append(entry, unless):
            return False
        self._changed.set()
        return True

    async def _write_own(self, kind: str, **fields: Any) -> None:
        """Wait for the lock, then write an entry about this host."""
        async with held(self._chain.lock, self._lock_timeout):
            self._chain.append(draft({"kind": kind, "host": self.host, **fields}))

    async def _claim(
        self, line: Draft, key: str, principal: str, unless: Callable[[EffectRecord | None], _Answer | None]
    ) -> _Answer | None:
        """Write the intent unless its key has an answer. Both happen under the lock of the ledger."""
        answer = None

        def answered() -> bool:
            nonlocal answer
            self._chain.read_keys()
            answer = unless(self._chain.keys.find(key, principal))
            return answer is not None

        await self._with_keys(lambda: self._write(line, answered))
        return answer

    async def _with_keys(self, function: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Call ``function``. If the keys are too far behind for the event loop, update the index and try again."""
        for _ in range(_MAX_TRIES):
            try:
                return await function()
            except KeysBehind as behind:
                rebuild = behind.damaged
            index = await to_thread.run_sync(partial(current_index, self.folder, rebuild=rebuild))
            self._chain.keys.use(index)
        raise LedgerIndexFailed(Index.path(self.folder), "other hosts write faster than it can be read")

    async def _keep_head(self) -> None:
        while True:
            await self._changed.wait()
            # Short runs end before, and sync everything themselves.
            await anyio.sleep(self._head_interval)
            self._changed = anyio.Event()
            await self._save_head()

    async def _keep_index(self) -> None:
        """Index new lines while no effects are recorded, those of earlier hosts first, or when they are many."""
        indexed = -1
        while True:
            if self._chain.written == indexed:
                await self._changed.wait()
            written = self._chain.written
            await anyio.sleep(self._index_interval)
            # Indexing takes processor time from the effects of a busy host, and their keys are in memory.
            if self._chain.written != written and self._chain.written - indexed < _MAX_UNINDEXED:
                continue
            indexed = self._chain.written
            try:
                await self._index_lines()
            except (sqlite3.Error, OSError) as error:
                # If the index is damaged, the next look-up rebuilds it.
                _log.warning("could not update the index of the ledger: %s", error)

    async def _index_lines(self) -> None:
        if not await to_thread.run_sync(segment_numbers, self.folder):
            return
        async with open_index(self.folder) as index:
            steps = index.catch_up(_INDEX_LINES)
            while await to_thread.run_sync(next, steps, False):  # noqa: ASYNC110 -- the pause lets others run
                await anyio.sleep(_INDEX_PAUSE)
            if self._chain.keys.gains_from(index):
                self._chain.keys.use(await to_thread.run_sync(current_index, self.folder))

    async def _save_head(self) -> None:
        """Sync the file, then update the head in the store and the files of hosts. Only log a failure."""
        head = self._chain.head
        mark = self._oldest(head)
        settled = [dead for dead in self._adopted if not dead.unsettled]
        try:
            await self.sync()
            # After the sync, because recovery reads neither lines before a mark nor those of a host without a file: a
            # power failure must not lose the outcomes among them.
            self._mark(mark)
            for dead in settled:
                self._adopted.remove(dead)
                dead.file.close(remove=True)
            # Before the head, which must not be later than the copy.
            await copy_lines(self.folder, self._store, identifier_of(self._head_key), head)
            await save_head(self._store, self._head_key, head, replaces=self._chain.lost, durable=False)
        except Exception as error:  # noqa: BLE001 -- the store is a plugin; the next write of the head retries
            _log.warning("could not store the head of the ledger: %s", error)

    def _oldest(self, head: Head) -> Mark:
        """Return the position of the oldest running effect, or of ``head`` if none is running."""
        oldest = next(iter(self._running.values()), head)
        return Mark(oldest.segment, oldest.size)

    def _mark(self, mark: Mark) -> None:
        """Store a position before which all effects are settled, for the host that adopts this one if it dies."""
        if self._file is not None:
            self._file.mark(mark)

    async def _finish(self) -> None:
        try:
            if self._begun:
                await self._write_own("close")
        except LedgerError as error:
            _log.warning("could not write the `close` line of the ledger: %s", error)
        try:
            if self._begun:
                with anyio.move_on_after(_MAX_CLOSE_SECONDS):
                    await self._save_head()
        finally:
            await to_thread.run_sync(self._release)  # closing the index may sync it

    def _release(self) -> None:
        for dead in self._adopted:
            dead.file.close(remove=False)
        if self._file is not None:
            self._file.close(remove=not self._running)
        self._chain.close()


def _sync_folders(folders: Sequence[Path]) -> None:
    for folder in folders:
        with suppress(PermissionError):  # the parent of the home folder may be closed to this user
            sync_folder(folder)
