"""Errors of hooks: at registration, when ordering implementations, and while an implementation runs.

    HookError(SidebandError)                      hook.error
    ├── HookNotFound(LookupError)                 hook.unknown
    ├── HookInvalid(TypeError)                    hook.invalid
    ├── HookOrderCycle(ValueError)                hook.cycle
    ├── HookFailed(RuntimeError)                  hook.failed
    │   └── HookResultInvalid(TypeError)          hook.result
    └── HookTimeout(TimeoutError)                 hook.timeout

A dispatch never raises the last three: the hook's failure policy turns them into an outcome, and they are reported
with the name of the plugin that caused them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import SidebandError, safe_text
from ..exit_codes import ExitCode
from ..suggestions import did_you_mean

__all__ = [
    "HookError",
    "HookFailed",
    "HookInvalid",
    "HookNotFound",
    "HookOrderCycle",
    "HookResultInvalid",
    "HookTimeout",
]


def described(plugin: str, package: str) -> str:
    """Return a plugin's name for messages: ``plugin `http` (sideband-http 1.2)``; ``package`` may be unknown."""
    return f"plugin `{plugin}` ({package})" if package else f"plugin `{plugin}`"


class HookError(SidebandError):
    """Base class of errors about hooks and their implementations."""

    code = "hook.error"


class HookNotFound(HookError, LookupError):
    """The hook is unknown."""

    code = "hook.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, hook: str, *, known: Iterable[str]) -> None:
        super().__init__(
            f"unknown hook `{hook}`{did_you_mean(hook, known)}",
            hint="list all hooks with `sideband hooks list`",
            hook=hook,
        )


class HookInvalid(HookError, TypeError):
    """A plugin's hook implementations are invalid. None of them was registered.

    Attributes:
        problems: one message for each problem.
    """

    code = "hook.invalid"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, plugin: str, problems: Sequence[str], *, hook: str | None = None) -> None:
        super().__init__(
            f"plugin `{plugin}` has invalid hook implementations: {'; '.join(problems)}",
            hint="list each hook with its event and return types with `sideband hooks list`",
            plugin=plugin,
            hook=hook,
        )
        self.problems = tuple(problems)


class HookOrderCycle(HookError, ValueError):
    """The ``before=`` and ``after=`` constraints of the plugins form a cycle.

    Attributes:
        cycle: the plugins, each of which must run before the next; the last is the same as the first.
    """

    code = "hook.cycle"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, hook: str, cycle: Sequence[str], *, plugin: str | None = None) -> None:
        super().__init__(
            f"the ordering constraints of `{hook}` form a cycle: {' before '.join(f'`{name}`' for name in cycle)}",
            hint="remove one `before=` or `after=`, or add one of these plugins to `[policy.deny]`",
            hook=hook,
            plugin=plugin,
        )
        self.cycle = tuple(cycle)


class HookFailed(HookError, RuntimeError):
    """An implementation raised an exception, which is the ``__cause__``."""

    code = "hook.failed"

    def __init__(self, hook: str, plugin: str, problem: str, *, package: str = "") -> None:
        super().__init__(
            f"{described(plugin, package)} failed in `{hook}`: {problem}",
            hint=f"report it to the plugin's author; to continue without the plugin, add `{plugin}` to `[policy.deny]`",
            hook=hook,
            plugin=plugin,
        )

    @classmethod
    def raised(cls, hook: str, plugin: str, cause: BaseException, *, package: str = "") -> HookFailed:
        """Return the failure for an exception that an implementation raised."""
        text = safe_text(cause)
        error = cls(hook, plugin, f"{type(cause).__name__}: {text}" if text else type(cause).__name__, package=package)
        error.__cause__ = cause
        return error


class HookResultInvalid(HookFailed, TypeError):
    """An implementation returned a value of a type that its hook does not accept."""

    code = "hook.result"

    def __init__(self, hook: str, plugin: str, found: object, *, allowed: str, package: str = "") -> None:
        problem = f"it returned {type(found).__name__}, but may return {allowed}"
        super().__init__(hook, plugin, problem, package=package)


class HookTimeout(HookError, TimeoutError):
    """The deadline of the dispatch passed while this plugin's implementation was running."""

    code = "hook.timeout"

    def __init__(self, hook: str, plugin: str, seconds: float, *, package: str = "") -> None:
        super().__init__(
            f"{described(plugin, package)} exceeded the deadline of `{hook}` ({seconds:g} s)",
            hint=f"start long work in the background and return; to continue without the plugin, add "
            f"`{plugin}` to `[policy.deny]`",
            hook=hook,
            plugin=plugin,
            retryable=True,
        )
        self.seconds = seconds
