"""Recognize errors that a skill gets because it runs in a worker. The host knows the ops to use instead."""

from __future__ import annotations

import errno
from types import TracebackType

_MAX_CHAIN = 8
_PROCESS_FILES = ("subprocess.py", "popen_fork.py", "popen_spawn_posix.py", "popen_forkserver.py", "pty.py")
_MESSAGES = {
    "EOF when reading a line": "input",
    "input(): lost sys.stdin": "input",
    "Could not determine home directory.": "environment",
}
_DATABASE_MESSAGES = ("unable to open database file", "attempt to write a readonly database")
_FILE_ERRORS = {
    errno.EROFS: "files.write",
    errno.EPERM: "files.write",
    errno.EACCES: "files",
    errno.ENOENT: "files.read",
}


def topic(error: BaseException) -> str:
    """Return what the error is about, such as ``network`` or ``module:requests``, or an empty string.

    Network libraries wrap the error of the operating system in others, so the causes are considered too.
    """
    found = _topic(error)
    current: BaseException | None = error
    for _ in range(_MAX_CHAIN):
        if found or current is None:
            break
        current = _cause(current)
        found = _system_topic(current) if isinstance(current, OSError) else ""
    return found


def _cause(error: BaseException) -> BaseException | None:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is None and error.args and isinstance(error.args[0], BaseException):
        # Some libraries pass the original error as an argument.
        return error.args[0]
    return cause


def _topic(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"module:{error.name[:100]}" if isinstance(error.name, str) else ""
    if isinstance(error, OSError):
        return _system_topic(error) or _file_topic(error)
    first = error.args[0] if error.args else None
    if isinstance(error, KeyError):
        file, name = (_frames(error) or [("", "")])[-1]
        return "environment" if name == "__getitem__" and file in ("os.py", "<frozen os>") else ""
    if type(error).__module__ == "sqlite3" and first in _DATABASE_MESSAGES:
        return "databases"
    return _MESSAGES.get(first, "") if isinstance(first, str) else ""


def _system_topic(error: OSError) -> str:
    """Return whether an error is about the network or about programs."""
    files = {file for file, _ in _frames(error)}
    if type(error).__name__ in ("gaierror", "herror") or isinstance(error, ConnectionError):
        return "network"
    if error.errno in (errno.EPERM, errno.EACCES, errno.ENOENT, errno.ENETUNREACH, errno.EHOSTUNREACH):
        if files.intersection(_PROCESS_FILES):
            return "programs"
        if "socket.py" in files:
            return "network"
    return ""


def _file_topic(error: OSError) -> str:
    if error.filename is None:
        return "files.write" if "No usable temporary directory" in str(error.strerror) else ""
    return _FILE_ERRORS.get(error.errno or 0, "")


def _frames(error: BaseException) -> list[tuple[str, str]]:
    """Return the file name and the function of each frame."""
    found = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append((code.co_filename.rpartition("/")[2], code.co_name))
        trace = trace.tb_next
    return found
