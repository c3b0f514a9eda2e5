"""The base class of all errors, and the errors that do not belong to a sub-package.

    SidebandError
    ├── ConfigurationError(ValueError)            config.invalid
    ├── StateUnwritable(OSError)                  state.unwritable
    ├── UsageError(ValueError)                    usage
    ├── StoreError(RuntimeError)                  store.failed
    │   ├── StoreConflict                         store.conflict
    │   └── StoreKeyInvalid(ValueError)           store.key
    ├── ReservationRefused                        reservation.refused
    ├── OpError                                   ops/_errors.py
    ├── PluginError, HookError                    plugins/_errors.py, hooks/_errors.py
    ├── EnvironmentMissing                        environments/_errors.py
    ├── CallError, WorkerError                    workers/_errors.py
    ├── AgentFailed, SessionError                 sideband_agent: _errors.py, sessions/_errors.py
    └── LedgerError                               ledger/_errors.py

Each class builds its own message and has a stable ``code``, an ``exit_code`` for the command line, and a ``hint`` that
says what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .exit_codes import ExitCode
from .rendering import whole_characters

__all__ = [
    "ConfigurationError",
    "ReservationRefused",
    "SidebandError",
    "StateUnwritable",
    "StoreConflict",
    "StoreError",
    "StoreKeyInvalid",
    "UsageError",
]


_MAX_LENGTH = 2_000
_NOT_PLUGINS = frozenset({"sideband", "anyio"})


class SidebandError(Exception):
    """The base class of all errors that sideband raises.

    Args:
        message: one sentence that describes the problem and names the invalid value.
        hint: what the user can do, or an empty string.
        code: a code that is more specific than that of the class, such as ``http.connect``.
        retryable: whether the same request may succeed later, or ``None`` for the default of the class.
        plugin: the entry-point name of the plugin that caused the error.
        hook: the hook that was running.
        op: the op that was running.

    Example:
        >>> error = SidebandError("the disk is full", hint="free some space", op="sql.execute")
        >>> error.as_dict()["hint"]
        'free some space'
    """

    code: str = "sideband.error"
    raised_at: str = ""
    """The file and line where a plugin raised what caused the error, for its author: never for a model or a skill."""
    retryable: bool = False
    exit_code: ExitCode = ExitCode.FAILURE

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str | None = None,
        retryable: bool | None = None,
        plugin: str | None = None,
        hook: str | None = None,
        op: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.plugin = plugin
        self.hook = hook
        self.op = op
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable

    def clean(self, text: Callable[[str], str]) -> None:
        """Apply ``text`` to each string in the error, in place. Subclasses with more strings must extend this method.

        Args:
            text: redacts the secrets in a string. It runs before strings are truncated, because a truncated secret
                would not be recognized.
        """
        self.message = text(str(self.message))[:_MAX_LENGTH]
        self.hint = text(str(self.hint))[:_MAX_LENGTH]
        self.args = (self.message,)
        if self.op is not None:
            self.op = text(self.op)[:200]

    def as_dict(self) -> dict[str, Any]:
        """Return ``code``, ``message``, ``hint`` and ``retryable``, and ``op``, ``plugin`` and ``hook`` if known."""
        known = {"op": self.op, "plugin": self.plugin, "hook": self.hook}
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            **{name: value for name, value in known.items() if value is not None},
        }


class ConfigurationError(SidebandError, ValueError):
    """A configuration key has an invalid value. The message names the key, the value and the file."""

    code = "config.invalid"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, key: str, problem: str, *, source: str = "", hint: str = "") -> None:
        where = f" ({source})" if source else ""
        super().__init__(f"configuration `{key}`{where}: {problem}", hint=hint)
        self.key = key
        self.source = source


class StateUnwritable(SidebandError, OSError):
    """A file or folder of the host's state cannot be created or written. Existing content is unchanged."""

    code = "state.unwritable"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(
            f"cannot write {path}: {error.strerror or error}",
            hint="check that it is a folder, free space and permissions, or set SIDEBAND_HOME to a writable folder",
        )


class UsageError(SidebandError, ValueError):
    """The request is malformed: an unknown flag, an invalid ``key=value``, a missing name."""

    code = "usage"
    exit_code = ExitCode.USAGE


class StoreError(SidebandError, RuntimeError):
    """The store failed. The operation had no partial effect."""

    code = "store.failed"


class StoreConflict(StoreError):
    """A versioned write found a different version than expected. Nothing was written.

    Args:
        key: the key of the document.
        expected: the version that the caller expected, if known.
        found: the version of the stored document, if known; 0 if it does not exist.

    Example:
        >>> StoreConflict("notes").message, StoreConflict("notes", expected=3, found=4).message
        ('`notes` has changed since it was read', '`notes` is at version 4, not 3')
    """

    code = "store.conflict"

    def __init__(self, key: str, *, expected: int | None = None, found: int | None = None) -> None:
        known = f"is at version {found}, not {expected}"
        super().__init__(
            f"`{key}` {'has changed since it was read' if None in (expected, found) else known}",
            hint="read the document again and apply the change to the new version",
            retryable=True,
        )
        self.key = key
        self.expected = expected
        self.found = found


class StoreKeyInvalid(StoreError, ValueError):
    """A text cannot be a key or the name of a stream. Nothing was read or written."""

    code = "store.key"

    def __init__(self, key: object, problem: str) -> None:
        super().__init__(
            f"invalid key {str(key)[:80]!r}: {problem}",
            hint="use a text of 1 to 1,024 bytes without control characters, such as a digest of a longer one",
        )


class ReservationRefused(SidebandError):
    """Less is left of a limited amount than was requested. Nothing was taken.

    Attributes:
        free_in: the number of seconds after which enough is free, if nothing is given back before.
    """

    code = "reservation.refused"
    retryable = True

    def __init__(self, name: str, count: int, *, left: int, of: int, seconds: float, free_in: float) -> None:
        super().__init__(
            f"`{name}`: requested {count:,}, but {left:,} of {of:,} within {seconds:,.15g} s are left",
            hint=f"try again in {free_in:,.0f} s",
        )
        self.free_in = free_in


def place_of(error: BaseException | None) -> str:
    """Return the last file and line of a traceback that belong to neither sideband nor the standard library.

    Typed errors of sideband are followed to their causes. One that another package defines was raised on purpose, so it
    has no place. The traceback itself is not kept, because its frames refer to values.
    """
    while isinstance(error, SidebandError):
        if error.raised_at:
            return error.raised_at
        if type(error).__module__.partition(".")[0] not in _NOT_PLUGINS:
            return ""
        error = error.__cause__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    found, trace = "", None if error is None else error.__traceback__
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package not in _NOT_PLUGINS and package not in sys.stdlib_module_names:
            found = f"{trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def safe_text(error: BaseException) -> str:
    """Return the text of an exception, without lone surrogates, even if its ``__str__`` raises.

    The text is not truncated, because a truncated secret would not be redacted.
    """
    try:
        return whole_characters(str(error))
    except Exception:  # noqa: BLE001  a foreign __str__ may raise anything
        return "(no message: `__str__` failed)"
