"""The MCP servers that a client passes for a session, and the answers of the user whether they may start."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from acp.schema import McpServerStdio
from attrs import field, frozen
from sideband.errors import StateUnwritable
from sideband.hooks import ClientServer
from sideband.state import FileLock, make_home, write_state_file

from ._errors import AcpServersRefused

ServerAnswer = Literal["start", "network", "never"]
"""Whether a server may start: in isolation, in isolation with the network, or not at all."""

_ANSWERS: tuple[ServerAnswer, ...] = ("start", "network", "never")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OTHER = re.compile(r"[^a-z0-9]+")
_LONGEST_WORD = 24
_LONGEST_VARIABLE = 128
_MOST_WORDS = 1_000
_FOLDER, _FILE = "acp", "servers.json"


@frozen
class GivenServer:
    """A program that a client passes as an MCP server.

    Attributes:
        title: its name, as the client says it.
        command: the program and its arguments.
        environment: further environment variables.
        read: the files and folders that the command names, without links. It may read these.
    """

    title: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    read: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it."""
        value = [self.title, self.command, dict(self.environment), self.read]
        text = json.dumps(value, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """The namespace of its tools. Another command has another name, so a right to this one does not cover it."""
        word = _OTHER.sub("_", self.title.lower()).strip("_")[:_LONGEST_WORD].strip("_")
        return f"{word if word[:1].isalpha() else 'server'}_{self.digest[:8]}"

    def lines(self) -> Iterator[str]:
        """Yield the lines that show all of it."""
        yield f"The editor passes the MCP server {json.dumps(self.title)}. It would be started as this program:"
        yield from (f"  │ {one}" for one in self.command)
        if self.environment:
            yield "with these environment variables:"
            yield from (f"  │ {name} = {value}" for name, value in self.environment.items())
        yield "It runs in isolation. Of your files, it can read only these, and it can change none:"
        yield from (f"  │ {one}" for one in self.read or ("none",))
        yield "You are asked about its tools, too, before the model sees them, and about calls of them."

    def accepted(self, answer: ServerAnswer) -> ClientServer:
        """Return it as the user has accepted it."""
        return ClientServer(self.name, self.command, self.environment, self.read, answer == "network")


def given_servers(servers: Sequence[Any], most: int) -> tuple[GivenServer, ...]:
    """Return the servers that a client passes.

    Args:
        servers: the servers.
        most: the maximum number of them.

    Raises:
        AcpServersRefused: if one of them cannot be used.
    """
    names = [str(getattr(one, "name", "")) for one in servers]
    if len(servers) > most:
        raise AcpServersRefused(names, f"are more than {most}")
    if addresses := [name for name, one in zip(names, servers, strict=True) if not isinstance(one, McpServerStdio)]:
        raise AcpServersRefused(addresses, "are addresses, and only programs are used from there")
    found = {one.digest: one for one in map(_given, servers)}  # one that is passed twice is one
    return tuple(found.values())


def _given(one: McpServerStdio) -> GivenServer:
    environment = {each.name: each.value for each in one.env}
    if any(not _VARIABLE.fullmatch(name) or len(name) > _LONGEST_VARIABLE for name in environment):
        raise AcpServersRefused([one.name], "have an environment variable with an invalid name")
    command = (one.command, *one.args)
    if not one.command or len(command) > _MOST_WORDS or any("\0" in word for word in (*command, *environment.values())):
        raise AcpServersRefused([one.name], "have an invalid command")
    named = [os.path.realpath(word) for word in command if word.startswith("/") and os.path.exists(word)]  # noqa: PTH110
    return GivenServer(one.name, command, environment, tuple(dict.fromkeys(named)))


@frozen
class ServerAnswers:
    """The user's answers about servers, in ``acp/`` of the host's state folder, each for one digest.

    A damaged file counts as one without answers.

    Attributes:
        home: the host's state folder.
    """

    home: Path

    def of(self, server: GivenServer) -> ServerAnswer | None:
        """Return the answer about exactly this server, or ``None`` without one."""
        answer = self._stored().get(server.digest)
        return next((one for one in _ANSWERS if one == answer), None)

    def remember(self, server: GivenServer, answer: ServerAnswer) -> None:
        """Store the answer about a server.

        Raises:
            StateUnwritable: if it cannot be stored.
        """
        folder = self.home / _FOLDER
        make_home(self.home)
        make_home(folder)
        with FileLock(folder / "lock") as lock:
            try:
                lock.acquire(math.inf)
            except OSError as error:
                raise StateUnwritable(folder, error) from error
            stored = {**self._stored(), server.digest: answer}
            write_state_file(folder / _FILE, f"{json.dumps(stored, indent=1, sort_keys=True)}\n")

    def _stored(self) -> dict[str, Any]:
        try:
            found = json.loads((self.home / _FOLDER / _FILE).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}
