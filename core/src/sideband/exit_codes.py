"""The exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """The exit code of a command. Each error class has the code that it causes as ``exit_code``.

    Attributes:
        SUCCESS: the command succeeded.
        FAILURE: the task failed.
        USAGE: the request was malformed.
        DENIED: a policy, a grant or a guard denied the request.
        UNAVAILABLE: a worker or a provider failed.
        CONFIGURATION: the configuration or a plugin is invalid.
        INTERRUPTED: the user interrupted the command: 128 plus the number of SIGINT, as in shells.
        TERMINATED: another process, such as ``timeout``, terminated the command: 128 plus the number of SIGTERM.

    Example:
        >>> ExitCode.DENIED
        <ExitCode.DENIED: 3>
    """

    SUCCESS = 0
    FAILURE = 1
    USAGE = 2
    DENIED = 3
    UNAVAILABLE = 4
    CONFIGURATION = 5
    INTERRUPTED = 130
    TERMINATED = 143
