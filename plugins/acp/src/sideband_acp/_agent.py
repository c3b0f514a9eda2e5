"""The methods of the protocol, as the SDK calls them. What a client sends is checked here."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from acp import PROTOCOL_VERSION, RequestError
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    ClientCapabilities,
    CloseSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)
from acp.schema import SessionInfo as ListedSession
from attrs import define, field
from sideband.errors import SidebandError
from sideband.rendering import render

from ._client import AcpClient, ClientConnection
from ._config_options import options_of
from ._errors import AcpFailed, AcpFolderInvalid, AcpSessionUnknown
from ._given_servers import GivenServer, given_servers
from ._input import Block, input_of
from ._modes import modes_of
from ._session import AcpSession
from ._sessions import OpenSessions
from ._version import __version__

T = TypeVar("T")

_LONGEST_NAME = 100
_NOT_FOUND, _INTERNAL, _PARAMS = -32002, -32603, -32602
_log = logging.getLogger("sideband.acp")


@define(eq=False)
class AcpAgent:
    """The methods of the protocol for one client.

    Args:
        sessions: the open sessions; ``None`` if there is no host.
        ignores_servers: whether to leave out the MCP servers that the client passes.
        failure: why there is no host.
    """

    sessions: OpenSessions | None
    ignores_servers: bool = False
    failure: SidebandError | None = None
    _connection: ClientConnection | None = field(default=None, init=False, repr=False)
    _client: AcpClient | None = field(default=None, init=False, repr=False)

    def on_connect(self, conn: ClientConnection) -> None:
        """Note the connection to the client."""
        self._connection = conn

    async def initialize(
        self,
        protocol_version: int,  # noqa: ARG002  there is one version
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
    ) -> InitializeResponse:
        """Say what the agent can do."""
        elicitation = client_capabilities.elicitation if client_capabilities is not None else None
        name = render(client_info.name)[:_LONGEST_NAME] if client_info is not None else "an editor"
        assert self._connection is not None  # noqa: S101  set when the SDK connects
        self._client = AcpClient(self._connection, name, elicitation is not None and elicitation.form is not None)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=False, sse=False),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(), resume=SessionResumeCapabilities(), close=SessionCloseCapabilities()
                ),
            ),
            auth_methods=[],
            agent_info=Implementation(name="sideband", title="sideband", version=__version__),
        )

    async def authenticate(self, method_id: str) -> AuthenticateResponse:  # noqa: ARG002  there is no method
        """Refuse: no method is offered."""
        raise RequestError(_PARAMS, "no authentication is needed", {"hint": "create a session with session/new"})

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, additional_directories: Sequence[str] | None = None
    ) -> NewSessionResponse:
        """Open a new session."""

        async def create() -> NewSessionResponse:
            folder, servers = self._folder(cwd, additional_directories), self._servers(mcp_servers)
            session = await self._opened().create(self._known_client(), folder, servers)
            session.announce()
            return NewSessionResponse(
                session_id=session.id, modes=modes_of(session.agent), config_options=options_of(session.agent)
            )

        return await _answered(create)

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Sequence[Any] | None = None,
        additional_directories: Sequence[str] | None = None,
    ) -> LoadSessionResponse:
        """Open a stored session, and send its history."""

        async def load() -> LoadSessionResponse:
            session = await self._restored(cwd, session_id, mcp_servers, additional_directories)
            await session.replay()
            session.announce()
            return LoadSessionResponse(modes=modes_of(session.agent), config_options=options_of(session.agent))

        return await _answered(load)

    async def resume_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Sequence[Any] | None = None,
        additional_directories: Sequence[str] | None = None,
    ) -> ResumeSessionResponse:
        """Open a stored session without its history, as the protocol says."""

        async def resume() -> ResumeSessionResponse:
            session = await self._restored(cwd, session_id, mcp_servers, additional_directories)
            session.announce()
            return ResumeSessionResponse(modes=modes_of(session.agent), config_options=options_of(session.agent))

        return await _answered(resume)

    async def close_session(self, session_id: str) -> CloseSessionResponse:
        """Close a session, and cancel its run."""

        async def close() -> CloseSessionResponse:
            await self._opened().close(session_id)
            return CloseSessionResponse()

        return await _answered(close)

    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None) -> ListSessionsResponse:
        """Return a page of the stored sessions, last used first."""

        async def list_() -> ListSessionsResponse:
            first = 0 if cursor is None else _position(cursor)
            sessions = self._opened()
            found, more = await sessions.list(None if cwd is None else _path(cwd), first)
            listed = [
                ListedSession(
                    session_id=one.id,
                    cwd=one.folder or "",
                    title=" ".join(render(one.name or one.first, prose=True).split()) or None,
                    updated_at=one.updated,
                )
                for one in found
            ]
            return ListSessionsResponse(
                sessions=listed, next_cursor=str(first + sessions.limits.listed) if more else None
            )

        return await _answered(list_)

    async def set_session_mode(self, session_id: str, mode_id: str) -> SetSessionModeResponse:
        """Select an approval mode."""

        async def select() -> SetSessionModeResponse:
            await self._opened().get(session_id).select_mode(mode_id)
            return SetSessionModeResponse()

        return await _answered(select)

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool
    ) -> SetSessionConfigOptionResponse:
        """Choose a value of an option."""

        async def select() -> SetSessionConfigOptionResponse:
            options = await self._opened().get(session_id).select(config_id, value)
            return SetSessionConfigOptionResponse(config_options=options)

        return await _answered(select)

    async def prompt(self, session_id: str, prompt: Sequence[Block]) -> PromptResponse:
        """Answer a prompt."""

        async def answer() -> PromptResponse:
            sessions = self._opened()
            session = sessions.get(session_id)
            return await session.prompt(input_of(prompt, sessions.limits.parts))

        return await _answered(answer)

    async def cancel(self, session_id: str) -> None:
        """Cancel the prompt in progress of an open session."""
        if self.sessions is None:
            return
        try:
            self.sessions.get(session_id).cancel()
        except AcpSessionUnknown as error:
            _log.warning("%s", error.message)

    async def _restored(
        self, cwd: str, session: str, servers: Sequence[Any] | None, directories: Sequence[str] | None
    ) -> AcpSession:
        folder, given = self._folder(cwd, directories), self._servers(servers)
        return await self._opened().restore(self._known_client(), folder, session, given)

    def _opened(self) -> OpenSessions:
        if self.failure is not None:
            raise self.failure
        assert self.sessions is not None  # noqa: S101  else there was a failure
        return self.sessions

    def _known_client(self) -> AcpClient:
        if self._client is None:
            raise AcpFailed("the connection is not initialized", hint="send initialize first")
        return self._client

    def _servers(self, servers: Sequence[Any] | None) -> Sequence[GivenServer]:
        """Return the servers of a session.

        Raises:
            SidebandError: if one cannot be used.
        """
        return () if self.ignores_servers else given_servers(servers or (), self._opened().limits.servers)

    def _folder(self, cwd: str, directories: Sequence[str] | None) -> Path:
        """Return the working directory of a session, after a check of what comes with it.

        Raises:
            SidebandError: if it cannot be used.
        """
        if directories:
            raise AcpFolderInvalid(directories[0], "would be a further one, which is not supported")
        folder = _path(cwd)
        try:
            exists = folder.is_dir()
        except OSError:  # such as a name that is too long
            exists = False
        if not exists:
            raise AcpFolderInvalid(cwd, "does not exist")
        return folder


def _path(text: str) -> Path:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise AcpFolderInvalid(text, "is not a path") from None
    if not text.startswith("/") or "\0" in text:
        raise AcpFolderInvalid(text, "is not an absolute path")
    return Path(os.path.normpath(text))


def _position(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
        raise RequestError(_PARAMS, "unknown cursor", {"hint": "pass the cursor of the page before, or leave it out"})
    return int(cursor)


async def _answered(do: Callable[[], Awaitable[T]]) -> T:
    """Return what a function returns. An error says what to do, since clients show little else.

    Raises:
        RequestError: if it fails.
    """
    try:
        return await do()
    except RequestError:
        raise
    except SidebandError as error:
        raise _request_error(error) from error
    except Exception as error:
        _log.exception("a request of the client failed")
        problem = f"{type(error).__name__}: {error}"
        raise RequestError(_INTERNAL, render(problem), {"hint": "report it"}) from error


def _request_error(error: SidebandError) -> RequestError:
    hint = render(error.hint, prose=True)
    message = f"{render(error.message, prose=True)}. {hint}" if hint else render(error.message, prose=True)
    is_unknown, is_invalid = isinstance(error, AcpSessionUnknown), isinstance(error, AcpFailed) and _is_value(error)
    code = _NOT_FOUND if is_unknown else _PARAMS if is_invalid else _INTERNAL
    return RequestError(code, message, {"code": error.code, "hint": hint})


def _is_value(error: Exception) -> bool:
    return isinstance(error, ValueError)
