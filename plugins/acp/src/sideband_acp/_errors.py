"""The errors that a client of the protocol gets.

SidebandError
└── AcpFailed                          acp.failed
    ├── AcpSessionUnknown(LookupError)    acp.session    no session has this id
    ├── AcpSessionsExceeded(RuntimeError) acp.sessions   too many sessions are open
    ├── AcpBusy(RuntimeError)             acp.busy       a prompt is in progress
    ├── AcpFolderInvalid(ValueError)      acp.folder     the working directory cannot be used
    ├── AcpServersRefused(ValueError)     acp.servers    the client passed MCP servers that cannot be used
    ├── AcpOptionUnknown(ValueError)      acp.option     a session has no such option or value
    └── AcpPromptInvalid(ValueError)      acp.prompt     a part of a prompt cannot be used
"""

from __future__ import annotations

from collections.abc import Sequence

from sideband.errors import SidebandError
from sideband.rendering import quoted

_MAX_NAMES = 10
_LONGEST = 200


class AcpFailed(SidebandError):
    """A request of a client failed."""

    code = "acp.failed"


class AcpSessionUnknown(AcpFailed, LookupError):
    """No session has this id."""

    code = "acp.session"

    def __init__(self, session: str) -> None:
        super().__init__(
            f"unknown session {quoted(session[:_LONGEST])}", hint="create one with session/new, or list them"
        )


class AcpSessionsExceeded(AcpFailed, RuntimeError):
    """The client has too many open sessions."""

    code = "acp.sessions"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} sessions are open already", hint="close one of them first; none of them is lost")


class AcpBusy(AcpFailed, RuntimeError):
    """The session is working on a prompt."""

    code = "acp.busy"

    def __init__(self) -> None:
        super().__init__(
            "the session is working on a prompt", hint="wait for its answer, or cancel it with session/cancel"
        )


class AcpFolderInvalid(AcpFailed, ValueError):
    """The working directory of a session cannot be used."""

    code = "acp.folder"

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(
            f"the working directory {quoted(folder[:_LONGEST])} {problem}", hint="pass the absolute path of a folder"
        )


class AcpServersRefused(AcpFailed, ValueError):
    """The client passed MCP servers that cannot be used."""

    code = "acp.servers"

    def __init__(self, names: Sequence[str], problem: str) -> None:
        shown = ", ".join(quoted(name[:_LONGEST]) for name in names[:_MAX_NAMES])
        super().__init__(
            f"the editor passes MCP servers that {problem}: {shown}",
            hint="add them with `sideband mcp add`, and start `sideband acp` with --ignore-servers",
        )


class AcpOptionUnknown(AcpFailed, ValueError):
    """A session has no such option, or the option has no such value."""

    code = "acp.option"

    def __init__(self, option: str, value: object) -> None:
        shown = f"{quoted(option[:_LONGEST])} with the value {quoted(str(value)[:_LONGEST])}"
        super().__init__(f"unknown option {shown}", hint="choose one of those that the session lists")


class AcpPromptInvalid(AcpFailed, ValueError):
    """A part of a prompt cannot be used."""

    code = "acp.prompt"
