"""The root of every error, and the errors that belong to no folder.

    SidebandError
    ├── ConfigurationError(ValueError)            config.invalid
    ├── StateUnwritable(OSError)                  state.unwritable
    ├── UsageError(ValueError)                    usage
    ├── StoreError(RuntimeError)                  store.failed
    │   └── StoreConflict                         store.conflict
    ├── OpError                                   ops/_errors.py
    ├── PluginError, HookError                    plugins/_errors.py, hooks/_errors.py
    ├── EnvironmentMissing                        environments/_errors.py
    ├── CallError, WorkerError                    workers/_errors.py
    ├── AgentFailed, SessionError                 sideband_agent: _errors.py, sessions/_errors.py
    └── LedgerError                               ledger/_errors.py

Each class builds its own message, has a stable ``code``, the ``exit_code`` of the command line, and a ``hint``
that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .exit_codes import ExitCode

__all__ = ["ConfigurationError", "SidebandError", "StateUnwritable", "StoreConflict", "StoreError", "UsageError"]


_LONGEST = 2_000


class SidebandError(Exception):
    """The base of all errors that sideband raises on purpose.

    Args:
        message: what happened, in one sentence, naming the value that was wrong.
        hint: what to do about it; empty if there is nothing to do.
        code: overrides the class's stable code (only more specific ones: ``http.connect``).
        retryable: whether the same request may succeed later; the class's default if ``None``.
        plugin: the entry-point name of the plugin it came from.
        hook: the hook that was running.
        op: the op that was running.

    Example:
        >>> error = SidebandError("the disk is full", hint="free some space", op="sql.execute")
        >>> error.as_dict()["hint"]
        'free some space'
    """

    code: str = "sideband.error"
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
        """Put every text that the error carries through ``text``, in place. Subclasses that carry more extend it.

        Args:
            text: takes what is secret out of a text. What is cut must be cut afterwards: half a secret is not
                recognised.
        """
        self.message = text(str(self.message))[:_LONGEST]
        self.hint = text(str(self.hint))[:_LONGEST]
        self.args = (self.message,)
        if self.op is not None:
            self.op = text(self.op)[:200]

    def as_dict(self) -> dict[str, Any]:
        """The error as data: ``code``, ``message``, ``hint``, ``retryable`` and what it came from, where known."""
        known = {"op": self.op, "plugin": self.plugin, "hook": self.hook}
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            **{name: value for name, value in known.items() if value is not None},
        }


class ConfigurationError(SidebandError, ValueError):
    """A configuration key has a value that can't be used. The message names the key, the value and the file."""

    code = "config.invalid"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, key: str, problem: str, *, source: str = "", hint: str = "") -> None:
        where = f" ({source})" if source else ""
        super().__init__(f"configuration `{key}`{where}: {problem}", hint=hint)
        self.key = key
        self.source = source


class StateUnwritable(SidebandError, OSError):
    """A file or folder of the host's state can't be written or made. What was there is untouched."""

    code = "state.unwritable"

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(
            f"{path} can't be written: {error.strerror or error}",
            hint="make room and give yourself the right, or set SIDEBAND_HOME to a folder that you can write to",
        )


class UsageError(SidebandError, ValueError):
    """A request that makes no sense as written: an unknown flag, a malformed ``key=value``, a missing name."""

    code = "usage"
    exit_code = ExitCode.USAGE


class StoreError(SidebandError, RuntimeError):
    """The store could not do what was asked; nothing was half-written."""

    code = "store.failed"


class StoreConflict(StoreError):
    """A versioned write met another version than the one it was made for."""

    code = "store.conflict"

    def __init__(self, key: str, *, expected: int, found: int) -> None:
        super().__init__(
            f"`{key}` is at version {found}, not {expected}",
            hint="read it again and repeat the change on what is there now",
            retryable=True,
        )
        self.key = key
        self.expected = expected
        self.found = found
