"""The errors of calls and of workers.

CallError(SidebandError)                      call.failed
├── ToolNotFound(LookupError)                 tool.unknown
├── ArgumentsInvalid(ValueError)              call.arguments
├── GrantRequired(PermissionError)            grant.required
├── AboveMaximum(PermissionError)             limit.timeout, limit.memory
├── SkillFailed(RuntimeError)                 skill.raised
├── SkillRefused(TypeError)                   skill.refused      not `async def`, unknown function, invalid result
├── CallTimeout(TimeoutError)                 call.timeout
├── CodeChanged(RuntimeError)                 call.code          the skill changed since its call was interrupted
└── CallCancelled(RuntimeError)               call.cancelled
WorkerError(SidebandError)                    worker.failed
├── WorkerStartFailed(OSError)                worker.start
├── WorkerExited(ConnectionError)             worker.exited
├── WorkerBlocked(RuntimeError)               worker.blocked
├── ProtocolViolation(ValueError)             worker.protocol
├── WorkerOverLimit(RuntimeError)             worker.memory, .threads, .files, .output, .processor
└── IsolationUnavailable(PermissionError)     isolation.unavailable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..approvals import ApprovalNeeded
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
    "CodeChanged",
    "GrantRequired",
    "IsolationUnavailable",
    "ProtocolViolation",
    "SkillFailed",
    "SkillRefused",
    "ToolNotFound",
    "WorkerBlocked",
    "WorkerError",
    "WorkerExited",
    "WorkerOverLimit",
    "WorkerStartFailed",
]


class CallError(SidebandError):
    """A call of a skill ended without a result."""

    code = "call.failed"


class ToolNotFound(CallError, LookupError):
    """The tool does not exist in any loaded skill."""

    code = "tool.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, tool: str, *, known: Iterable[str] = (), problems: Iterable[str] = ()) -> None:
        not_loaded = "; ".join(problems)
        super().__init__(
            f"unknown tool `{tool}`{did_you_mean(tool, known)}"
            + (f" (not loaded: {not_loaded})" if not_loaded else ""),
            hint="run `sideband skills list` to see all skills, and why a skill is not loaded",
        )


class ArgumentsInvalid(CallError, ValueError):
    """The arguments do not match the tool's schema. The call was not started."""

    code = "call.arguments"
    exit_code = ExitCode.USAGE

    def __init__(self, tool: str, problems: str) -> None:
        super().__init__(f"{tool}: {problems}", hint=f"run `sideband skills show {tool}` to see its arguments")


class GrantRequired(CallError, PermissionError):
    """The skill requests capabilities that it was not granted. The call was not started.

    Args:
        skill: the name of the skill.
        missing: the capabilities.
        refused: why the user refused, which may be empty; ``None`` if the user was not asked.
        needed: the stored request for approval, if there was no approver.
    """

    code = "grant.required"
    exit_code = ExitCode.DENIED

    def __init__(
        self, skill: str, missing: Iterable[str], *, refused: str | None = None, needed: ApprovalNeeded | None = None
    ) -> None:
        self.skill = skill
        self.needed = needed
        self.missing = tuple(missing)
        self.refused = refused is not None
        why = "the user refused to grant" if self.refused else "it was not granted"
        why += f" ({refused})" if refused else ""
        options = granting(self.missing)
        once = f"pass {options} to grant them once, " if options else ""
        hint = f"{once}pass --yes to grant them to this version of the skill, or add them to `[grants]`"
        if needed is not None:
            hint = f"{hint}; or run `sideband approvals approve {needed.request.id}` and repeat it"
        if self.refused:
            hint = f"the refusal holds for this run; in the next one, answer yes, or {hint}"
        super().__init__(f"skill `{skill}` requests capabilities that {why}: {' '.join(self.missing)}", hint=hint)


class AboveMaximum(CallError, PermissionError):
    """A skill, tool or call requests more than the policy allows. The call was not started.

    Args:
        what: ``timeout`` or ``memory``.
        who: the skill, tool or call that requests it.
        asked: the requested amount, with its unit.
        most: the maximum of the policy, with its unit.
    """

    code = "limit"
    exit_code = ExitCode.DENIED

    def __init__(self, what: str, who: str, asked: str, most: str) -> None:
        super().__init__(
            f"{who} requests a {what} of {asked}, but the policy allows at most {most}",
            code=f"limit.{what}",
            hint=f"raise `maximum_{what}` under [policy], or request less",
        )


class SkillFailed(CallError, RuntimeError):
    """The skill's code raised an exception. ``traceback`` is the redacted traceback from the worker.

    Args:
        tool: ``skill.tool``.
        message: the type and the message of the exception.
        traceback: its traceback.
        where: the file, line and function of the skill that raised it or called what raised it, if known.
    """

    code = "skill.raised"
    topic = ""

    def __init__(self, tool: str, message: str, *, traceback: str = "", where: str = "") -> None:
        super().__init__(
            f"{tool} raised {message}" + (f" ({where})" if where else ""),
            hint="correct the code of the skill, or report the error to its author",
        )
        self.traceback = traceback

    def clean(self, text: Callable[[str], str]) -> None:
        """Redact the message and the traceback. See ``SidebandError.clean``."""
        super().clean(text)
        self.traceback = text(self.traceback)

    def as_dict(self) -> dict[str, Any]:
        """Return the error as data, with the ``traceback``."""
        return {**super().as_dict(), "traceback": self.traceback}


class SkillRefused(CallError, TypeError):
    """The function cannot be called, or its result cannot be sent. The message states the reason."""

    code = "skill.refused"
    topic = ""


class CodeChanged(CallError, RuntimeError):
    """A call was interrupted, and its skill has changed since. The record of the old code is not used for the new."""

    code = "call.code"

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} was interrupted, and its skill has changed since; it is unknown whether its work was finished",
            hint="check what the recorded effects have done, then call the tool again",
        )


class CallTimeout(CallError, TimeoutError):
    """The call did not end before its deadline.

    Args:
        tool: ``skill.tool``.
        seconds: the timeout.
        hint: what to do, if not the usual.
        where: the file, line and function that blocked the worker, if known.
        waiting: the file, line and function at which the call waited, if known.
    """

    code = "call.timeout"

    def __init__(self, tool: str, seconds: float, *, hint: str = "", where: str = "", waiting: str = "") -> None:
        blocked = f"; its worker was blocked at {where}" if where else ""
        waited = f"; it was at {waiting}" if waiting else ""
        super().__init__(
            f"{tool} did not end within {seconds:g} s{blocked or waited}",
            hint=hint or "raise `sideband.timeout` in SKILL.md, `timeout` under [policy], or --timeout of `call`",
            retryable=True,
        )
        if where:
            self.hint = f"end the loop there, or compute in `await asyncio.to_thread(…)`; to wait longer, {self.hint}"
        self.seconds = seconds


class CallCancelled(CallError, RuntimeError):
    """The call was cancelled by its caller."""

    code = "call.cancelled"

    def __init__(self, tool: str) -> None:
        super().__init__(f"{tool} was cancelled")


class WorkerError(SidebandError):
    """The worker process failed, rather than the skill's code."""

    code = "worker.failed"
    exit_code = ExitCode.UNAVAILABLE


class WorkerStartFailed(WorkerError, OSError):
    """A worker could not be started."""

    code = "worker.start"


class WorkerExited(WorkerError, ConnectionError):
    """The worker exited or was stopped during the call. The next call gets a new worker.

    Args:
        how: a verb phrase about its end, such as ``exited with code 3``.
    """

    code = "worker.exited"

    def __init__(self, how: str) -> None:
        super().__init__(
            f"the worker {how} during the call",
            hint="see the last lines of the call's log; the next call gets a new worker",
            retryable=True,
        )


class WorkerBlocked(WorkerError, RuntimeError):
    """Another call of the skill blocked the event loop of the worker until this call failed.

    Args:
        where: the file, line and function of the blocking code, or an empty string if unknown.
    """

    code = "worker.blocked"

    def __init__(self, where: str) -> None:
        super().__init__(
            "another call of the skill blocked the worker" + (f" at {where}" if where else ""),
            hint="compute in `await asyncio.to_thread(…)`, or set `sideband.isolation: call` in SKILL.md",
            retryable=True,
        )
        self.where = where


class ProtocolViolation(WorkerError, ValueError):
    """The worker sent an invalid message and was killed."""

    code = "worker.protocol"

    def __init__(self, problem: str) -> None:
        super().__init__(f"the worker violated the protocol: {problem}", hint="see the ledger; the worker was killed")
        self.problem = problem


class WorkerOverLimit(WorkerError, RuntimeError):
    """The worker exceeded a resource limit and was killed.

    Args:
        what: ``memory``, ``threads``, ``files``, ``output`` or ``processor``.
        used: the amount used, with its unit.
        limit: the limit, with its unit.
        hint: what the user can do.
    """

    code = "worker.limit"

    def __init__(self, what: str, used: str, limit: str, *, hint: str = "") -> None:
        super().__init__(
            f"the worker exceeded its {what} limit of {limit}: {used}",
            code=f"worker.{what}",
            hint=hint or "reduce its resource usage; the worker was killed with all its calls",
        )


class IsolationUnavailable(WorkerError, PermissionError):
    """The required isolation is not available on this machine, and a lower tier was not allowed."""

    code = "isolation.unavailable"
    exit_code = ExitCode.DENIED

    def __init__(self, wanted: str, available: str, hints: Iterable[str] = ()) -> None:
        self.available = available
        remedy = "; ".join([*hints, f"or accept a lower tier with --isolation {available}"])
        super().__init__(f"isolation `{wanted}` is required, but only `{available}` is available", hint=remedy)
