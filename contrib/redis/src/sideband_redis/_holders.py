"""The locks of open stores, and how a store that has lost them is cut off.

Each open store is a holder: a member of the sorted set `holders`, with the time at which it ends unless it is renewed.
A task renews it, and so does each write. A holder that has ended keeps its locks until another one wants one of them:
the script that gives the lock away also removes the holder. All scripts that write find then that it is gone, and write
nothing. So a holder never loses a lock while it can write, whatever happened to it, its network or the clocks.
"""

from __future__ import annotations

import secrets

import anyio
from attrs import define, field

from ._calls import Caller, StoreKeys
from ._connection import Argument, RedisConnection
from ._errors import RedisDamaged, RedisUnsupported, RedisUnwritable, ServerError, store_error
from ._models import Config
from ._scripts import ENTER, LEAVE, LOCK, RENEW, UNLOCK

FORMAT = "1"
_TAKEN, _ENDED = 1, 2


@define(eq=False)
class RedisLocks:
    """The locks of a holder.

    Args:
        caller: calls the server as the holder.
    """

    caller: Caller
    _held: dict[str, int] = field(factory=dict, init=False)
    _given_up: dict[tuple[str, int], float] = field(factory=dict, init=False)
    _attempts: int = field(default=0, init=False)

    def begin(self) -> int:
        """Return the number of a new attempt to take a lock."""
        self._attempts += 1
        return self._attempts

    def give_up(self, name: str, attempt: int) -> None:
        """Note that an attempt, or its release, ended without an answer. It may succeed until the time limit."""
        if self._held.get(name) == attempt:
            del self._held[name]
        self._given_up[name, attempt] = anyio.current_time() + self.caller.config.command_seconds

    async def take(self, connection: RedisConnection, name: str, attempt: int, *, by_force: bool) -> bool | None:
        """Take a lock.

        Args:
            connection: a connection.
            name: its name.
            attempt: the number of the attempt.
            by_force: whether to take it from a holder that has ended.

        Returns:
            Whether it was free; ``None`` if its holder has ended and ``by_force`` is false.
        """
        given_up = "".join(f",{one}" for other, one in self._given_up if other == name) + ","
        arguments = (_bytes(name), attempt, given_up, int(by_force))
        ((code, found),) = await self.caller.call(connection, LOCK, [self.caller.names.locks], arguments)
        if code == b"damaged":
            raise RedisDamaged(name, "a lock has no holder")
        if found == _TAKEN:
            self._held[name] = attempt
        return None if found == _ENDED else found == _TAKEN

    def held(self, name: str) -> int | None:
        """Return the number of the attempt that has taken a lock; ``None`` if this holder does not have it."""
        return self._held.get(name)

    async def release(self, connection: RedisConnection, name: str, attempt: int) -> None:
        """Release a lock."""
        await self._release(connection, name, attempt)
        if self._held.get(name) == attempt:
            del self._held[name]

    async def release_given_up(self, connection: RedisConnection) -> None:
        """Release what attempts without an answer have taken."""
        for (name, attempt), ends in list(self._given_up.items()):
            is_over = anyio.current_time() > ends
            if await self._release(connection, name, attempt) or is_over:
                self._given_up.pop((name, attempt), None)

    async def _release(self, connection: RedisConnection, name: str, attempt: int) -> bool:
        locks = self.caller.names.locks
        ((_, found),) = await self.caller.call(connection, UNLOCK, [locks], (_bytes(name), attempt))
        return bool(found)


async def enter(connection: RedisConnection, config: Config) -> Caller:
    """Add a holder, and the version of the format if there is no data.

    Raises:
        RedisUnsupported: if the data has another version.
        RedisUnwritable: if the user lacks a right.
    """
    names, holder = StoreKeys(config.prefix), secrets.token_hex(8)
    keys = [names.format, names.holders, names.locks, names.transaction, names.documents, names.index]
    keys_and_stream: list[Argument] = [*keys, names.stream(b"")]
    lease = int(config.lost_seconds * 1_000)
    answer = await connection.ask("EVAL", ENTER.text, len(keys_and_stream), *keys_and_stream, holder, lease, FORMAT)
    if answer[0] == b"format":
        found = answer[1].decode(errors="replace")
        raise RedisUnsupported(
            f"its data has version {found}, but this version of sideband-redis supports version {FORMAT}",
            hint="upgrade sideband-redis on this machine, or use another `prefix`",
        )
    if answer[0] == b"denied":
        raise RedisUnwritable(
            f"the user has no right to {answer[1].decode()} on {answer[2].decode()}",
            hint=f"grant the user of `address` all commands on the keys `{{{config.prefix}}}:*`",
        )
    return Caller(config, names, holder)


async def renew(connection: RedisConnection, caller: Caller) -> None:
    """Show that the holder lives.

    Raises:
        RedisCutOff: if the server does not know it.
    """
    await caller.call(connection, RENEW, (), (), is_confirmed=False)


async def leave(connection: RedisConnection, caller: Caller) -> None:
    """Release all locks."""
    keys = [caller.names.holders, caller.names.locks]
    answer = (await connection.exchange(("EVAL", LEAVE.text, len(keys), *keys, caller.holder)))[0]
    if isinstance(answer, ServerError):
        raise store_error(answer)


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogatepass")
