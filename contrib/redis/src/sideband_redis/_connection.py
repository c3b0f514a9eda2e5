"""A connection to a server, in the protocol RESP2. It waits with anyio, and therefore runs on asyncio and trio."""

from __future__ import annotations

import select
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import hiredis
from anyio.abc import ByteStream, SocketAttribute
from attrs import define, field

from ._address import ServerAddress
from ._errors import ConnectionLost, RedisBusy, RedisUnreachable, RedisUnsupported, ServerError, store_error

_MORE = object()
_CHUNK = 65_536
_BROKEN = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)

Argument = str | bytes | int
Command = tuple[Argument, ...]


def _reader() -> hiredis.Reader:
    return hiredis.Reader(replyError=ServerError, notEnoughData=_MORE)


@define(eq=False)
class RedisConnection:
    """A connection that one task uses at a time. What is not answered makes it unusable, so replies are never mixed.

    Args:
        stream: the bytes from and to the server.
        seconds: the time limit of each exchange.
    """

    _stream: ByteStream
    _seconds: float
    _reader: hiredis.Reader = field(factory=_reader, init=False)
    _is_broken: bool = field(default=False, init=False)
    _clock: float = field(default=0.0, init=False)

    async def exchange(self, *commands: Command, seconds: float | None = None) -> list[Any]:
        """Send commands, and return their answers, of which those that are errors are returned as ``ServerError``.

        Raises:
            ConnectionLost: if the connection breaks. The commands may have been executed.
            RedisBusy: if the server does not answer in time.
        """
        self._is_broken = True
        limit = seconds or self._seconds
        answers: list[Any] = []
        with anyio.move_on_after(limit):
            try:
                await self._stream.send(b"".join(_packed(one) for one in commands))
                while len(answers) < len(commands):
                    answers.append(await self._answer())
            except _BROKEN as error:
                if answers and isinstance(answers[0], ServerError):
                    raise answers[0] from error  # a server that refuses a connection says why, and closes it
                raise ConnectionLost(_text_of(error) or "the server has closed the connection") from error
            except hiredis.ProtocolError as error:
                raise ConnectionLost(f"what answers is not a Redis server: {error}") from error
            self._is_broken = False
            return answers
        raise RedisBusy(f"the server did not answer for {limit:g} s", hint="check the server and the network")

    async def ask(self, *command: Argument) -> Any:
        """Send one command, and return its answer.

        Raises:
            ServerError: if the answer is an error.
        """
        (answer,) = await self.exchange(command)
        if isinstance(answer, ServerError):
            raise answer
        return answer

    async def read_clock(self) -> None:
        """Ask for the time of the server. By that, ``time_in`` is never too late."""
        seconds, microseconds = await self.ask("TIME")
        self._clock = int(seconds) * 1_000 + int(microseconds) / 1_000 - anyio.current_time() * 1_000

    def time_in(self, seconds: float) -> int:
        """Return what the clock of the server shows in some seconds, in milliseconds since 1970."""
        return int(self._clock + (anyio.current_time() + seconds) * 1_000)

    def is_usable(self) -> bool:
        """Return whether an idle connection can be used: what the server sends meanwhile is the end of it."""
        if self._is_broken or self._reader.has_data():
            return False
        poll = select.poll()
        poll.register(self._stream.extra(SocketAttribute.raw_socket), select.POLLIN)  # noqa: S610  not of Django
        return not poll.poll(0)

    async def wait_for_end(self) -> None:
        """Return when the server closes the idle connection."""
        with suppress(*_BROKEN):
            await self._stream.receive(1)
        self._is_broken = True

    async def send(self, *command: Argument) -> None:
        """Send a command of a subscriber, whose answer is a message.

        Raises:
            ConnectionLost: if the connection breaks.
        """
        try:
            await self._stream.send(_packed(command))
        except _BROKEN as error:
            raise ConnectionLost(_text_of(error) or "the server has closed the connection") from error

    async def push(self) -> Any:
        """Return the next message to a subscriber.

        Raises:
            ConnectionLost: if the connection breaks.
        """
        try:
            return await self._answer()
        except (*_BROKEN, hiredis.ProtocolError) as error:
            raise ConnectionLost(_text_of(error) or "the server has closed the connection") from error

    async def discard(self) -> None:
        """Close the connection at once."""
        self._is_broken = True
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(self._stream)

    async def _answer(self) -> Any:
        while (answer := self._reader.gets()) is _MORE:
            self._reader.feed(await self._stream.receive(_CHUNK))
        return answer


async def connect(
    address: ServerAddress, password: str, *, ca_file: Path | None, seconds: float, command_seconds: float
) -> RedisConnection:
    """Open a connection.

    Args:
        address: the server.
        password: the password, or an empty text.
        ca_file: certificates of authorities, instead of those of the system.
        seconds: the time limit for opening it.
        command_seconds: the time limit of each exchange.

    Raises:
        OSError: if the server cannot be reached.
        ConnectionLost: if it closes the connection.
        StoreError: if it refuses the user.
    """
    connection: RedisConnection | None = None
    with anyio.move_on_after(seconds):
        connection = RedisConnection(await _stream(address, ca_file), command_seconds)
    if connection is None:
        raise ConnectionLost(f"no answer from {address} for {seconds:g} s")
    try:
        await _introduce(connection, address, password, seconds)
        await connection.read_clock()
    except BaseException:
        await connection.discard()
        raise
    return connection


async def _introduce(connection: RedisConnection, address: ServerAddress, password: str, seconds: float) -> None:
    is_named = bool(password or address.user)
    commands: list[Command] = [("AUTH", address.user or "default", password)] if is_named else []
    commands += [("CLIENT", "SETNAME", "sideband"), ("SELECT", address.database)]
    if not address.database:  # the default, which needs no right
        commands.pop()
    answers = await connection.exchange(*commands, seconds=seconds)
    if is_named and isinstance(answers[0], ServerError) and not answers[0].is_temporary:
        # The text of the server may contain the password.
        raise store_error(ServerError("WRONGPASS"))
    last = answers[-1]
    if not isinstance(last, ServerError):
        return
    if last.is_temporary or last.kind == "NOAUTH":
        raise last
    if address.database:
        raise _no_database(address, last)


def _no_database(address: ServerAddress, error: ServerError) -> RedisUnsupported:
    return RedisUnsupported(f"database {address.database}: {error}", hint="name another database in `address`")


async def _stream(address: ServerAddress, ca_file: Path | None) -> ByteStream:
    if address.socket:
        return await anyio.connect_unix(address.socket)
    host, port = address.host, address.port
    try:
        if not address.is_encrypted:
            return await anyio.connect_tcp(host, port)
        return await anyio.connect_tcp(
            host, port, tls=True, ssl_context=_context(ca_file), tls_standard_compatible=False
        )
    except UnicodeError as error:
        raise RedisUnreachable(f"{host!a} is not the name of a machine: {error}") from error


def _context(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:
        raise RedisUnreachable(
            f"the authorities in {str(ca_file)!r} cannot be read: {_text_of(error)}",
            hint="name a file of certificates in PEM format as `ca_file`",
        ) from error


def _packed(command: Command) -> bytes:
    packed: bytes = hiredis.pack_command(command)  # type: ignore[arg-type]  # it accepts any number of arguments
    return packed


def _text_of(error: BaseException) -> str:
    return " ".join(str(error).split())
