"""What can go wrong with sessions.

SessionError(SidebandError)              session.failed
├── SessionNotFound(LookupError)         session.missing      no session has this id or name
├── SessionAmbiguous(LookupError)        session.ambiguous    several have
├── SessionLocked(BlockingIOError)       session.locked       somebody else writes it
├── SessionClosed(RuntimeError)          session.closed       it was used after it was closed
├── EntryNotFound(LookupError)           session.entry        the session has no such entry
├── EntryAmbiguous(LookupError)          session.entry_ambiguous   it has several
├── SessionUnreadable(ValueError)        session.unreadable   what was to be imported is no session
│   └── SessionTooNew                    session.version      it has a newer version of the format
├── SessionFormatMissing(LookupError)    session.format       no installed package knows the format of a file
└── SessionFileExists(FileExistsError)   session.exists       a file is there already
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sideband.errors import SidebandError
from sideband.exit_codes import ExitCode
from sideband.suggestions import did_you_mean

_LIST = "`sideband sessions list` shows what there is"
_SHOWN = 5


class SessionError(SidebandError):
    """Something that was asked of a session can't be done, and was not."""

    code = "session.failed"


class SessionNotFound(SessionError, LookupError):
    """No session has this id, begins with it, or has this name."""

    code = "session.missing"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, known: Iterable[str] = ()) -> None:
        super().__init__(f"there is no session `{session}`{did_you_mean(session, known)}", hint=_LIST)
        self.session = session


class SessionAmbiguous(SessionError, LookupError):
    """Several sessions have this name, or begin with it."""

    code = "session.ambiguous"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, found: Sequence[str]) -> None:
        super().__init__(f"`{session}` stands for {len(found)} sessions: {_some(found)}", hint="give more of the id")
        self.session = session


class SessionLocked(SessionError, BlockingIOError):
    """Another agent, in this process or in another one, writes the session. It can be read and forked meanwhile."""

    code = "session.locked"

    def __init__(self, session: str, process: int | None = None) -> None:
        who = f"the process {process}" if process else "another agent"
        super().__init__(
            f"the session `{session}` is being written by {who}",
            hint="end that one, or fork the session and go on in the copy",
            retryable=True,
        )
        self.session = session


class SessionClosed(SessionError, RuntimeError):
    """The session was closed, and can't be written any more."""

    code = "session.closed"

    def __init__(self, session: str) -> None:
        super().__init__(f"the session `{session}` is closed", hint="open it again with `Sessions.open`")
        self.session = session


class EntryNotFound(SessionError, LookupError):
    """The session has no such entry."""

    code = "session.entry"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, entry: str) -> None:
        super().__init__(
            f"the session `{session}` has no entry `{entry}`", hint=f"`sideband sessions tree {session}` shows them"
        )
        self.session = session
        self.entry = entry


class EntryAmbiguous(SessionError, LookupError):
    """Several entries of the session have this label, or begin with it."""

    code = "session.entry_ambiguous"
    exit_code = ExitCode.USAGE

    def __init__(self, session: str, entry: str, found: Sequence[str]) -> None:
        super().__init__(
            f"`{entry}` stands for {len(found)} entries of the session `{session}`: {_some(found)}",
            hint="give more of the id",
        )
        self.session = session
        self.entry = entry


class SessionUnreadable(SessionError, ValueError):
    """What was to be imported is no session that this version can read. Nothing was stored."""

    code = "session.unreadable"

    def __init__(self, problem: str, *, hint: str = "", path: Path | None = None) -> None:
        super().__init__(
            f"{path or 'this'} is no session that can be imported: {problem}",
            hint=hint or "a session is a JSONL file that `sideband sessions export` wrote",
        )


class SessionTooNew(SessionUnreadable):
    """A newer sideband-agent wrote the session. It is as it was: nothing was stored, and nothing was mended."""

    code = "session.version"

    def __init__(self, session: object, version: int, known: int) -> None:
        super(SessionUnreadable, self).__init__(
            f"the session `{session}` has version {version} of the format, and this sideband-agent reads up to {known}",
            hint="upgrade sideband-agent: `pip install --upgrade sideband-agent`",
        )
        self.version = version


class SessionFormatMissing(SessionError, LookupError):
    """No installed package reads and writes this format of files.

    Args:
        name: the format.
        known: the formats that can be used.
        package: the package that has it, if that is known.
        problem: why it can't be used, if it is installed.
    """

    code = "session.format"
    exit_code = ExitCode.USAGE

    def __init__(self, name: str, known: Sequence[str] = (), *, package: str = "", problem: str = "") -> None:
        if problem:
            super().__init__(f"the session format `{name}` can't be used: {problem}", hint="install its package anew")
        else:
            super().__init__(
                f"the session format `{name}` is not installed",
                hint=f"`pip install {package}`" if package else f"use {' or '.join(f'`{one}`' for one in known)}",
            )


class SessionFileExists(SessionError, FileExistsError):
    """The file that was to be written is there already. It was not touched."""

    code = "session.exists"
    exit_code = ExitCode.USAGE

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is there already", hint="name another file, or add --force to replace it")
        self.path = path


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
