"""Errors of sessions.

SessionError(SidebandError)              session.failed
├── SessionNotFound(LookupError)         session.missing      no session has this id or name
├── SessionAmbiguous(LookupError)        session.ambiguous    several sessions match
├── SessionLocked(BlockingIOError)       session.locked       another writer has the session open
├── SessionClosed(RuntimeError)          session.closed       the session was used after it was closed
├── EntryNotFound(LookupError)           session.entry        the session does not contain the entry
├── EntryAmbiguous(LookupError)          session.entry_ambiguous   several entries match
├── SessionUnreadable(ValueError)        session.unreadable   the file is not a session that can be imported
│   └── SessionTooNew                    session.version      the session has a newer version of the format
├── SessionFormatMissing(LookupError)    session.format       the format of a file is not installed
└── SessionFileExists(FileExistsError)   session.exists       the file already exists
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

_LIST = "`sideband sessions list` shows the sessions"
_SHOWN = 5


class SessionError(SidebandError):
    """An operation on a session failed."""

    code = "session.failed"


class SessionNotFound(SessionError, LookupError):
    """No session has this id, a matching id prefix, or this name."""

    code = "session.missing"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"unknown session `{session}`{did_you_mean(session, known)}", hint=_LIST)
        self.session = session


class SessionAmbiguous(SessionError, LookupError):
    """Several sessions have this name or id prefix."""

    code = "session.ambiguous"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, found: Sequence[str]) -> None:
        super().__init__(f"`{session}` matches {len(found)} sessions: {_some(found)}", hint="use a longer prefix")
        self.session = session


class SessionLocked(SessionError, BlockingIOError):
    """Another agent, in this or another process, has the session open for writing. It can be read and forked."""

    code = "session.locked"

    def __init__(self, session: str, process: int | None = None) -> None:
        who = f"process {process}" if process else "another agent"
        super().__init__(
            f"session `{session}` is open for writing in {who}",
            hint=f"close it there, or continue in a copy: `sideband sessions fork {session}`",
            retryable=True,
        )
        self.session = session


class SessionClosed(SessionError, RuntimeError):
    """The session was closed and can no longer be written."""

    code = "session.closed"

    def __init__(self, session: str) -> None:
        super().__init__(f"session `{session}` is closed", hint="open it again with `Sessions.open`")
        self.session = session


class EntryNotFound(SessionError, LookupError):
    """The session does not contain the entry."""

    code = "session.entry"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, entry: str) -> None:
        super().__init__(
            f"session `{session}` has no entry `{entry}`", hint=f"`sideband sessions tree {session}` shows its entries"
        )
        self.session = session
        self.entry = entry


class EntryAmbiguous(SessionError, LookupError):
    """Several entries of the session have this label or id prefix."""

    code = "session.entry_ambiguous"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, entry: str, found: Sequence[str]) -> None:
        super().__init__(
            f"`{entry}` matches {len(found)} entries of session `{session}`: {_some(found)}",
            hint="use a longer prefix of the id",
        )
        self.session = session
        self.entry = entry


class SessionUnreadable(SessionError, ValueError):
    """The file is not a session that this version can import. Nothing was stored."""

    code = "session.unreadable"

    def __init__(self, problem: str, *, hint: str = "", path: Path | None = None) -> None:
        super().__init__(
            f"{path or 'the file'} cannot be imported as a session: {problem}",
            hint=hint or "use a JSONL file written by `sideband sessions export`",
        )


class SessionTooNew(SessionUnreadable):
    """A newer sideband-agent wrote the session. It was not changed."""

    code = "session.version"

    def __init__(self, session: object, version: int, known: int) -> None:
        super(SessionUnreadable, self).__init__(
            f"session `{session}` has format version {version}; this sideband-agent supports up to {known}",
            hint="upgrade sideband-agent: `pip install --upgrade sideband-agent`",
        )
        self.version = version


class SessionFormatMissing(SessionError, LookupError):
    """The session format of a file is not installed.

    Args:
        name: the format.
        known: the installed formats.
        package: the package that provides the format, if known.
        problem: why the format cannot be loaded, if it is installed.
    """

    code = "session.format"
    exit_code = ExitCode.USAGE

    def __init__(self, name: str, known: Sequence[str] = (), *, package: str = "", problem: str = "") -> None:
        if problem:
            super().__init__(f"failed to load the session format `{name}`: {problem}", hint="reinstall its package")
        else:
            super().__init__(
                f"the session format `{name}` is not installed",
                hint=f"`pip install {package}`" if package else f"use {' or '.join(f'`{one}`' for one in known)}",
            )


class SessionFileExists(SessionError, FileExistsError):
    """The target file already exists. It was not changed."""

    code = "session.exists"
    exit_code = ExitCode.USAGE

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} already exists", hint="choose another file, or use --force to replace it")
        self.path = path


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
