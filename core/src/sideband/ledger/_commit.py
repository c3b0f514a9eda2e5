"""Group commit: concurrent tasks share one sync of the ledger and the store, in one thread."""

from __future__ import annotations

import os
from collections.abc import Callable

import anyio
from anyio import to_thread
from attrs import define, field

from ..errors import StoreError
from ..store import Store
from ._chain import Chain, sync_data
from ._errors import LedgerUnwritable


@define
class _Round:
    """One sync.

    Attributes:
        covers: the number of appends that it syncs.
        ended: set when the sync has ended.
        failure: the error, if it failed.
    """

    covers: int = 0
    ended: anyio.Event = field(factory=anyio.Event)
    failure: OSError | StoreError | None = None


@define
class GroupCommit:
    """The group commit of a chain and a store, which syncs appends to disk, and everything written before to the store.

    If no sync is running, the calling task syncs all appends made so far. If one is running, the calling task waits for
    the next one, which covers its append; the first waiting task starts it. Each task is therefore woken only once.

    A sync that failed is not repeated: the system may have dropped what it could not write, and then reports success.

    Attributes:
        synced: the number of appends that are on disk.
    """

    chain: Chain
    store: Store
    synced: int = 0
    _round: _Round | None = None
    _next: _Round | None = None

    async def through(self, written: int) -> None:
        """Return once the first ``written`` appends of the chain are on disk.

        Raises:
            LedgerUnwritable: if the sync of the ledger failed.
            StoreError: if the sync of the store failed.
        """
        while self.synced < written:
            if self._next is not None:
                round_ = self._next
                await round_.ended.wait()
            elif self._round is None:
                round_ = await self._sync(_Round())
            else:
                round_ = await self._sync_after(self._round)
            if round_.failure is not None and round_.covers >= written:
                if isinstance(round_.failure, StoreError):
                    raise round_.failure
                raise LedgerUnwritable(self.chain.folder, round_.failure) from round_.failure

    async def _sync_after(self, current: _Round) -> _Round:
        """Start the next sync as soon as the current one has ended."""
        round_ = self._next = _Round()
        try:
            await current.ended.wait()
        except BaseException:
            round_.ended.set()  # cancelled: wake the other waiters, one of which starts the sync
            raise
        finally:
            self._next = None
        return await self._sync(round_)

    async def _sync(self, round_: _Round) -> _Round:
        self._round = round_
        round_.covers = self.chain.written
        # Use a duplicate descriptor, because the chain may start another segment during the sync. The chain syncs the
        # old segment itself before it starts a new one.
        descriptor: int | None = None
        try:
            descriptor = self.chain.duplicate()
            await to_thread.run_sync(self._sync_both, descriptor, self.store.unsynced())
            self.synced = max(self.synced, round_.covers)
        except (OSError, StoreError) as error:
            round_.failure = error
        finally:
            if descriptor is not None:
                os.close(descriptor)
            self._round = None
            round_.ended.set()
        return round_

    def _sync_both(self, descriptor: int | None, sync_store: Callable[[], None] | None) -> None:
        if descriptor is not None:
            if self.chain.failure is not None:
                raise self.chain.failure
            try:
                sync_data(descriptor)
            except OSError as error:
                self.chain.failure = error
                raise
        if sync_store is not None:
            sync_store()
