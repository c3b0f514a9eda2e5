"""A connection of psycopg that waits with anyio, and therefore runs on asyncio and trio."""

from __future__ import annotations

import select
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import psycopg
from anyio import to_thread
from psycopg import pq
from psycopg.abc import RV, PQGen
from psycopg.conninfo import conninfo_attempts, conninfo_to_dict, make_conninfo
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

# How long a cancelled statement may take to end before its connection is closed.
_CANCEL_SECONDS = 2.0


class Refused(psycopg.OperationalError):
    """The server runs and refuses the connection, or the address is invalid: another attempt would fail too."""


class PostgresConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection to PostgreSQL. One task may use it at a time.

    If the task is cancelled during a statement, the server is asked to end it, so that it is not executed at a later
    moment; it may have been executed before.
    """

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:  # noqa: ARG002, ASYNC109  of psycopg
        """Drive an operation on the connection until it ends, as the driver's own method does with asyncio."""
        try:
            return await self._drive(gen, next(gen))
        except StopIteration as ended:
            result: RV = ended.value
            return result

    async def _drive(self, gen: PQGen[RV], wanted: Wait) -> RV:
        try:
            while True:
                ready = await _ready(self.pgconn.socket, wanted)
                try:
                    wanted = gen.send(ready)
                except StopIteration as ended:
                    result: RV = ended.value
                    return result
        except anyio.get_cancelled_exc_class():
            await self._end_statement(gen, wanted)
            raise

    async def _end_statement(self, gen: PQGen[RV], wanted: Wait) -> None:
        """Cancel the statement in the server and wait for its end. Close the connection if that takes too long."""
        with anyio.move_on_after(_CANCEL_SECONDS, shield=True):
            with suppress(psycopg.Error, StopIteration):
                await self._cancel_statement()
                while True:
                    wanted = gen.send(await _ready(self.pgconn.socket, wanted))
            return
        self.pgconn.finish()

    async def _cancel_statement(self) -> None:
        # `PGconn.get_cancel` would hold the interpreter's lock until the server answers.
        canceller = self.pgconn.cancel_conn()
        try:
            canceller.start()
            await _polled(canceller.poll, lambda: canceller.socket)
        finally:
            canceller.finish()

    def is_usable(self) -> bool:
        """Return whether an idle connection can be used: what the server sends meanwhile is the end of the session."""
        if self.closed or self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            return False
        poll = select.poll()
        poll.register(self.pgconn.socket, select.POLLIN)
        return not poll.poll(0)

    def discard(self) -> None:
        """Close the connection at once."""
        self.pgconn.finish()


async def connect(address: str, options: Mapping[str, Any], *, seconds: float) -> PostgresConnection:
    """Open a connection.

    Args:
        address: the database, or several of which the first that can be reached is used.
        options: further parameters of libpq.
        seconds: the time limit for each.

    Raises:
        Refused: if a server refuses it.
        psycopg.Error: if it cannot be opened.
    """
    # In a thread, since it looks up the names of hosts.
    attempts = await to_thread.run_sync(conninfo_attempts, conninfo_to_dict(address, **options), abandon_on_cancel=True)
    failed: psycopg.Error = psycopg.OperationalError("the address names no host")
    for one in attempts:
        failed = psycopg.OperationalError(f"no answer for {seconds:g} s")
        with anyio.move_on_after(seconds):
            try:
                return await _open(make_conninfo("", **one).encode())
            except psycopg.Error as error:
                failed = error
    raise failed


async def _open(info: bytes) -> PostgresConnection:
    # `PGconn.connect` would hold the interpreter's lock until the server answers.
    opened = pq.PGconn.connect_start(info)
    try:
        await _finish_opening(opened)
        opened.nonblocking = 1
        connection = PostgresConnection(opened)
        await connection.set_autocommit(True)
    except BaseException:
        opened.finish()
        raise
    return connection


async def _finish_opening(opened: PGconn) -> None:
    stages = set()

    def poll() -> int:
        stages.add(opened.status)
        return opened.connect_poll()

    if opened.status == pq.ConnStatus.BAD or await _polled(poll, lambda: opened.socket) != pq.PollingStatus.OK:
        answered = stages - {pq.ConnStatus.STARTED}
        raise (Refused if answered else psycopg.OperationalError)(opened.get_error_message())


async def _polled(poll: Callable[[], int], socket: Callable[[], int]) -> int:
    """Poll until a connection is open, or has failed."""
    while (status := poll()) not in (pq.PollingStatus.OK, pq.PollingStatus.FAILED):
        await _ready(socket(), Wait.R if status == pq.PollingStatus.READING else Wait.W)
    return status


async def _ready(descriptor: int, wanted: Wait) -> Ready:
    if wanted == Wait.R:
        await anyio.wait_readable(descriptor)
        return Ready.R
    if wanted == Wait.W:
        await anyio.wait_writable(descriptor)
        return Ready.W
    found = Ready.NONE
    async with anyio.create_task_group() as tasks:

        async def readable() -> None:
            nonlocal found
            await anyio.wait_readable(descriptor)
            found = Ready(found | Ready.R)
            tasks.cancel_scope.cancel()

        async def writable() -> None:
            nonlocal found
            await anyio.wait_writable(descriptor)
            found = Ready(found | Ready.W)
            tasks.cancel_scope.cancel()

        tasks.start_soon(readable)
        tasks.start_soon(writable)
    return found
