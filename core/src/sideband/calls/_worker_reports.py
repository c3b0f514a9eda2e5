"""Record requests of workers that were rejected before they became a dispatch."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import anyio
from anyio import AsyncContextManagerMixin

from ..broker import Broker
from ..ledger import LedgerError
from ..ops import Origin
from ..workers import WorkerReport

_log = logging.getLogger("sideband.workers")
_QUEUE_SIZE = 1_000


class WorkerReports(AsyncContextManagerMixin):
    """Queues reports and records them sequentially. Use it with ``async with``; exiting it records the remaining ones.

    If a worker causes more reports than can be written, the surplus is dropped and its number is logged. The requests
    themselves were rejected anyway.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._dropped = 0
        self._send, self._receive = anyio.create_memory_object_stream[WorkerReport](_QUEUE_SIZE)

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._record_all)
            with self._send:
                yield self
        if self._dropped:
            _log.warning("dropped %d reports about workers: the queue was full", self._dropped)

    def take(self, report: WorkerReport) -> None:
        """Queue one report."""
        try:
            self._send.send_nowait(report)
        except (anyio.WouldBlock, anyio.ClosedResourceError):
            self._dropped += 1

    async def _record_all(self) -> None:
        async with self._receive:
            async for report in self._receive:
                try:
                    origin = Origin(principal="worker", run=report.call)
                    await self._broker.record_refusal(report.op or "worker", origin, report.code, report.message)
                except LedgerError as error:
                    _log.warning("a rejected request of a worker could not be recorded: %s", error.message)
