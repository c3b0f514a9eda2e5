"""Records what workers tried and was refused before it became a dispatch."""

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
_LONGEST_QUEUE = 1_000


class WorkerReports(AsyncContextManagerMixin):
    """Takes reports at once and records them one after the other. Used as ``async with``; leaving it records the rest.

    A worker that causes more than can be written loses the surplus, which is counted in the log: what it tried was
    refused all the same.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lost = 0
        self._send, self._receive = anyio.create_memory_object_stream[WorkerReport](_LONGEST_QUEUE)

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncIterator[Self]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._record_all)
            with self._send:
                yield self
        if self._lost:
            _log.warning("%d reports about workers were not recorded: there were too many at once", self._lost)

    def take(self, report: WorkerReport) -> None:
        """Queue one report."""
        try:
            self._send.send_nowait(report)
        except (anyio.WouldBlock, anyio.ClosedResourceError):
            self._lost += 1

    async def _record_all(self) -> None:
        async with self._receive:
            async for report in self._receive:
                try:
                    origin = Origin(principal="worker", run=report.call)
                    await self._broker.record_refusal(report.op or "worker", origin, report.code, report.message)
                except LedgerError as error:
                    _log.warning("what a worker tried could not be recorded: %s", error.message)
