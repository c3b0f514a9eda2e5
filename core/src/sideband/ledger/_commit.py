"""Syncing the ledger and the store to disk, in one thread and for all waiting tasks at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from anyio import to_thread
from attrs import Factory, define, field

from ..state import GroupCommit
from ..store import Store
from ._chain import Chain, sync_data
from ._errors import LedgerUnwritable


@define
class LedgerCommit:
    """The group commit of a chain and a store, which syncs all appends, and everything written before to the store.

    Attributes:
        synced: the number of appends that are on disk.
    """

    chain: Chain
    store: Store
    synced: int = 0
    _group: GroupCommit = field(init=False, default=Factory(lambda self: GroupCommit(self._sync), takes_self=True))

    async def through(self, written: int) -> None:
        """Return once the first ``written`` appends of the chain are on disk.

        Raises:
            LedgerUnwritable: if the sync of the ledger failed, now or earlier.
            StoreError: if the sync of the store failed.
        """
        if self.synced < written:
            await self._group.wait()

    async def _sync(self) -> None:
        self._check_failure()
        written = self.chain.written
        # Use a duplicate descriptor, because the chain may start another segment during the sync. The chain syncs the
        # old segment itself before it starts a new one. The thread closes it, since it may go on after this task:
        # asyncio's own cancellation does not wait for threads.
        try:
            unclosed = self.chain.duplicate()
        except OSError as error:
            raise LedgerUnwritable(self.chain.folder, error) from error
        try:
            await to_thread.run_sync(self._sync_both, unclosed, self.store.unsynced())
        finally:
            with suppress(IndexError):
                os.close(unclosed.pop())  # the thread has not begun
        self._check_failure()  # the chain may have got the error of this file, when it started another segment
        self.synced = max(self.synced, written)

    def _check_failure(self) -> None:
        """Never sync again after a failure: the system may have dropped what it could not write, and report success."""
        if self.chain.failure is not None:
            raise LedgerUnwritable(self.chain.folder, self.chain.failure, synced=False) from self.chain.failure

    def _sync_both(self, unclosed: list[int], sync_store: Callable[[], None] | None) -> None:
        with suppress(IndexError):
            descriptor = unclosed.pop()
            try:
                sync_data(descriptor)
            except OSError as error:
                self.chain.failure = error
                self._check_failure()
            finally:
                os.close(descriptor)
        if sync_store is not None:
            sync_store()
