"""Commands of an open store, which is known to the server as a holder of locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field, frozen

from ._connection import Argument, Command, RedisConnection
from ._errors import RedisBusy, RedisCutOff, RedisUnconfirmed, ServerError, store_error
from ._models import Config
from ._scripts import Script

# Of the time limit, in which the server may execute a script. It then never does so after the limit, although its clock
# may differ from what this host takes it for, by the rest of the limit.
_IN_TIME = 0.9


class NotYet(Exception):
    """The server has not executed the command, and soon may."""


@frozen
class StoreKeys:
    """The keys of a store. The braces keep them together, should they move to a cluster.

    Args:
        prefix: the beginning of all.
    """

    prefix: str
    format: str = field(init=False)
    holders: str = field(init=False)
    locks: str = field(init=False)
    transaction: str = field(init=False)
    documents: str = field(init=False)
    index: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        for name in ("format", "holders", "locks", "transaction", "documents", "index"):
            object.__setattr__(self, name, f"{{{self.prefix}}}:{name}")

    @property
    def of_documents(self) -> Sequence[str]:
        """The keys of documents and of the open transaction, in the order of the scripts."""
        return (self.transaction, self.documents, self.index)

    def stream(self, name: bytes) -> bytes:
        """Return the key of a stream."""
        return f"{{{self.prefix}}}:stream:".encode() + name


@frozen
class Caller:
    """Calls scripts and commands as a holder.

    Attributes:
        config: limits, and the number of replicas.
        names: the keys of the store.
        holder: its name.
    """

    config: Config
    names: StoreKeys
    holder: str

    async def call(
        self,
        connection: RedisConnection,
        script: Script,
        keys: Sequence[Argument],
        arguments: Sequence[Argument],
        *,
        is_confirmed: bool = True,
        reads: Sequence[Command] = (),
    ) -> list[Any]:
        """Call a script, and return its answer, and those of ``reads`` after it.

        Args:
            connection: a connection.
            script: the script.
            keys: its keys, after the one of the holders.
            arguments: its arguments, after those of all scripts.
            is_confirmed: whether replicas must have what it writes.
            reads: commands that are executed after it.

        Raises:
            NotYet: if it was not executed, and soon may.
            StoreError: if it was refused.
        """
        replicas = self.config.replicas if is_confirmed else 0
        all_keys = [self.names.holders, *keys]
        for attempt in range(3):
            header = (self.holder, self._period(connection), self._lease)
            kind, text = ("EVAL", script.text) if attempt else ("EVALSHA", script.digest)
            commands: list[Command] = [(kind, text, len(all_keys), *all_keys, *header, *arguments)]
            if replicas:
                commands.append(("WAIT", replicas, max(1, int(self.config.command_seconds * 500))))
            answer, *others = await connection.exchange(*commands, *reads)
            if isinstance(answer, ServerError) and answer.kind == "NOSCRIPT":
                continue
            if not isinstance(answer, ServerError) and answer[0] == b"late":
                await connection.read_clock()
                continue
            break
        found = self._checked(answer)
        if replicas and found[0] == b"ok":
            _check_confirmed(others[0], replicas)
        found_by_reads = others[len(commands) - 1 :]
        for one in found_by_reads:
            _check(one)
        return [found, *found_by_reads]

    async def read(self, connection: RedisConnection, *commands: Command) -> list[Any]:
        """Return the answers to commands that read.

        Raises:
            RedisCutOff: if the server does not know the holder, as after it has lost its data.
        """
        *answers, ends = await connection.exchange(*commands, ("ZSCORE", self.names.holders, self.holder))
        for one in (*answers, ends):
            _check(one)
        if ends is None:
            raise RedisCutOff
        return answers

    def _period(self, connection: RedisConnection) -> str:
        """Return the first and the last time at which the server may execute a script."""
        limit = self.config.command_seconds
        return f"{connection.time_in(limit * (_IN_TIME - 1))}-{connection.time_in(limit * _IN_TIME)}"

    @property
    def _lease(self) -> int:
        return int(self.config.lost_seconds * 1_000)

    def _checked(self, answer: Any) -> list[Any]:
        _check(answer)
        code = answer[0]
        if code == b"cut":
            raise RedisCutOff
        if code == b"wait":
            raise NotYet("another transaction is open")
        if code == b"late":
            raise NotYet("the clock of the server is set again and again")
        if code == b"lost":
            raise RedisBusy(
                f"the transaction did nothing for more than {self.config.transaction_seconds:g} s, and has ended",
                hint="keep transactions short, or raise `transaction_seconds`",
            )
        found: list[Any] = answer
        return found


def _check(answer: Any) -> None:
    if isinstance(answer, ServerError):
        if answer.is_temporary:
            raise NotYet(str(answer)) from answer
        raise store_error(answer) from answer


def _check_confirmed(answer: int, wanted: int) -> None:
    _check(answer)
    if answer < wanted:
        raise RedisUnconfirmed(answer, wanted)
