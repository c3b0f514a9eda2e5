"""What can go wrong with a call, and with the worker that runs it.

CallError(SidebandError)                      call.failed
├── ToolNotFound(LookupError)                 tool.unknown
├── ArgumentsInvalid(ValueError)              call.arguments
├── GrantRequired(PermissionError)            grant.required
├── AboveMaximum(PermissionError)             limit.timeout, limit.memory
├── SkillFailed(RuntimeError)                 skill.raised
├── SkillRefused(TypeError)                   skill.refused      not `async def`, no such function, bad result
├── CallTimeout(TimeoutError)                 call.timeout
└── CallCancelled(RuntimeError)               call.cancelled
WorkerError(SidebandError)                    worker.failed
├── WorkerStartFailed(OSError)                worker.start
├── WorkerExited(ConnectionError)             worker.exited
├── ProtocolViolation(ValueError)             worker.protocol
├── WorkerOverLimit(RuntimeError)             worker.memory, .threads, .files, .output, .processor
└── IsolationUnavailable(PermissionError)     isolation.unavailable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ..ops._errors import granting
from ..suggestions import did_you_mean

__all__ = [
    "AboveMaximum",
    "ArgumentsInvalid",
    "CallCancelled",
    "CallError",
    "CallTimeout",
    "GrantRequired",
    "IsolationUnavailable",
    "ProtocolViolation",
    "SkillFailed",
    "SkillRefused",
    "ToolNotFound",
    "WorkerError",
    "WorkerExited",
    "WorkerOverLimit",
    "WorkerStartFailed",
]


class CallError(SidebandError):
    """One skill call ended without a result."""

    code = "call.failed"


class ToolNotFound(CallError, LookupError):
    """No loaded skill has this tool."""

    code = "tool.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, tool: str, *, known: Iterable[str] = (), problems: Iterable[str] = ()) -> None:
        not_loaded = "; ".join(problems)
        super().__init__(
            f"there is no tool `{tool}`{did_you_mean(tool, known)}"
            + (f" (not loaded: {not_loaded})" if not_loaded else ""),
            hint="`sideband skills list` shows what is loaded and what is not, with the reason",
        )


class ArgumentsInvalid(CallError, ValueError):
    """The arguments do not fit the tool's schema. Nothing has run."""

    code = "call.arguments"
    exit_code = ExitCode.USAGE

    def __init__(self, tool: str, problems: str) -> None:
        super().__init__(f"{tool}: {problems}", hint=f"`sideband skills show {tool}` shows its arguments")


class GrantRequired(CallError, PermissionError):
    """The skill asks for more than it was granted. Nothing has run."""

    code = "grant.required"
    exit_code = ExitCode.DENIED

    def __init__(self, skill: str, missing: Iterable[str]) -> None:
        self.skill = skill
        self.missing = tuple(missing)
        flags = " ".join(map(granting, self.missing))
        # Not every command has --grant: an agent may use many skills, and rights are those of one.
        super().__init__(
            f"the skill `{skill}` asks for rights that it was not granted: {' '.join(self.missing)}",
            hint=f"grant all that it asks for with --yes; for one `sideband call`, {flags}; for good, its line under "
            "`[grants]` in sideband.toml",
        )


class AboveMaximum(CallError, PermissionError):
    """A skill, tool or call asks for more than the policy allows. Nothing has run.

    Args:
        what: ``timeout`` or ``memory``.
        who: asks for it.
        asked: how much, with its unit.
        most: how much may be asked for, with its unit.
    """

    code = "limit"
    exit_code = ExitCode.DENIED

    def __init__(self, what: str, who: str, asked: str, most: str) -> None:
        super().__init__(
            f"{who} asks for a {what} of {asked}, and {most} is the most that the policy allows",
            code=f"limit.{what}",
            hint=f"raise `maximum_{what}` under [policy], or ask for less",
        )


class SkillFailed(CallError, RuntimeError):
    """The skill's own code raised. ``traceback`` is what the worker says, redacted."""

    code = "skill.raised"

    def __init__(self, tool: str, message: str, *, traceback: str = "") -> None:
        super().__init__(f"{tool} raised {message}", hint="it is the skill's own error; see its traceback")
        self.traceback = traceback

    def clean(self, text: Callable[[str], str]) -> None:
        """See ``SidebandError.clean``."""
        super().clean(text)
        self.traceback = text(self.traceback)

    def as_dict(self) -> dict[str, Any]:
        """The error as data, with the ``traceback``."""
        return {**super().as_dict(), "traceback": self.traceback}


class SkillRefused(CallError, TypeError):
    """The function can't be called, or returned what can't be sent: the message names it and says why."""

    code = "skill.refused"


class CallTimeout(CallError, TimeoutError):
    """The call did not end before its deadline."""

    code = "call.timeout"

    def __init__(self, tool: str, seconds: float, *, hint: str = "") -> None:
        super().__init__(
            f"{tool} did not end within {seconds:g} s",
            hint=hint or "give it more time with --timeout, or `sideband.timeout` in its SKILL.md",
            retryable=True,
        )
        self.seconds = seconds


class CallCancelled(CallError, RuntimeError):
    """The call was cancelled by whoever asked for it."""

    code = "call.cancelled"

    def __init__(self, tool: str) -> None:
        super().__init__(f"{tool} was cancelled")


class WorkerError(SidebandError):
    """The process that ran the call, not the skill's code, is at fault."""

    code = "worker.failed"
    exit_code = ExitCode.UNAVAILABLE


class WorkerStartFailed(WorkerError, OSError):
    """No worker could be started."""

    code = "worker.start"


class WorkerExited(WorkerError, ConnectionError):
    """The worker ended while the call was in it. The next call gets a new one."""

    code = "worker.exited"

    def __init__(self, how: str) -> None:
        super().__init__(
            f"the worker ended {how} while the call was running",
            hint="what it printed last is in the call's log; the next call gets a new worker",
            retryable=True,
        )


class ProtocolViolation(WorkerError, ValueError):
    """The worker said something that the protocol does not allow, and was ended."""

    code = "worker.protocol"

    def __init__(self, problem: str) -> None:
        super().__init__(f"the worker broke the protocol: {problem}", hint="it was ended; the violation is recorded")
        self.problem = problem


class WorkerOverLimit(WorkerError, RuntimeError):
    """The worker used more of something than it may, and was ended.

    Args:
        what: ``memory``, ``threads``, ``files``, ``output`` or ``processor``.
        used: how much it used, with its unit.
        limit: how much it may use, with its unit.
        hint: what to do about it.
    """

    code = "worker.limit"

    def __init__(self, what: str, used: str, limit: str, *, hint: str = "") -> None:
        super().__init__(
            f"the worker used too much {what}: {used}, where {limit} is the limit",
            code=f"worker.{what}",
            hint=hint or "it was ended with all calls that were in it; the next call gets a new worker",
        )


class IsolationUnavailable(WorkerError, PermissionError):
    """The configured isolation can't be had here, and running with less was not allowed."""

    code = "isolation.unavailable"
    exit_code = ExitCode.DENIED

    def __init__(self, wanted: str, available: str, hints: Iterable[str] = ()) -> None:
        self.available = available
        remedy = "; ".join([*hints, f"or accept less with --isolation {available}"])
        super().__init__(f"isolation `{wanted}` is required, and `{available}` is what can be had here", hint=remedy)
