"""The exit codes of the command line."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """What a command ends with. An error class names the code that it leads to.

    Attributes:
        SUCCESS: done.
        FAILURE: the task failed.
        USAGE: the request was malformed.
        DENIED: a policy, a grant or a guard refused.
        UNAVAILABLE: a worker or a provider failed.
        CONFIGURATION: the configuration or a plugin can't be used.
        INTERRUPTED: a person interrupted the command: 128 and the number of SIGINT, as shells count.

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
