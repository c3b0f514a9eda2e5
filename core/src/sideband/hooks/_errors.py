"""What can go wrong with hooks: at registration, in the order, and while an implementation runs.

    HookError(SidebandError)                      hook.error
    ├── HookNotFound(LookupError)                 hook.unknown
    ├── HookInvalid(TypeError)                    hook.invalid
    ├── HookOrderCycle(ValueError)                hook.cycle
    ├── HookFailed(RuntimeError)                  hook.failed
    │   └── HookResultInvalid(TypeError)          hook.result
    └── HookTimeout(TimeoutError)                 hook.timeout

The last three are never raised out of a dispatch: the hook's failure policy turns them into its outcome, and they
reach the report with the name of the plugin that caused them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import SidebandError
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


class HookError(SidebandError):
    """Something about a hook, or about a plugin's implementation of one."""

    code = "hook.error"


class HookNotFound(HookError, LookupError):
    """There is no hook of this name."""

    code = "hook.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, hook: str, *, known: Iterable[str]) -> None:
        super().__init__(
            f"there is no hook `{hook}`{did_you_mean(hook, known)}",
            hint="`sideband hooks list` shows them all",
            hook=hook,
        )


class HookInvalid(HookError, TypeError):
    """A plugin's hook implementations can't be used. Nothing of it was registered.

    Attributes:
        problems: each thing that is wrong, as one sentence without a full stop.
    """

    code = "hook.invalid"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, plugin: str, problems: Sequence[str], *, hook: str | None = None) -> None:
        super().__init__(
            f"plugin `{plugin}` can't take part in the hooks: {'; '.join(problems)}",
            hint="`sideband hooks list` shows each hook, its event and what it may return",
            plugin=plugin,
            hook=hook,
        )
        self.problems = tuple(problems)


class HookOrderCycle(HookError, ValueError):
    """The wishes ``before=`` and ``after=`` of the plugins exclude each other.

    Attributes:
        cycle: the plugins, each of which must run before the next; the last one is the first one again.
    """

    code = "hook.cycle"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, hook: str, cycle: Sequence[str], *, plugin: str | None = None) -> None:
        super().__init__(
            f"the order of `{hook}` can't be solved: {' before '.join(f'`{name}`' for name in cycle)}",
            hint="take back one `before=` or `after=`, or name one of these plugins under `[policy] deny`",
            hook=hook,
            plugin=plugin,
        )
        self.cycle = tuple(cycle)


class HookFailed(HookError, RuntimeError):
    """An implementation raised. What it raised is the ``__cause__``."""

    code = "hook.failed"

    def __init__(self, hook: str, plugin: str, problem: str) -> None:
        super().__init__(
            f"plugin `{plugin}` failed in `{hook}`: {problem}",
            hint=f"report it to the plugin's author; to go on without it, name `{plugin}` under `[policy] deny`",
            hook=hook,
            plugin=plugin,
        )

    @classmethod
    def raised(cls, hook: str, plugin: str, cause: Exception) -> HookFailed:
        """The failure for what an implementation raised."""
        text = str(cause)
        error = cls(hook, plugin, f"{type(cause).__name__}: {text}" if text else type(cause).__name__)
        error.__cause__ = cause
        return error


class HookResultInvalid(HookFailed, TypeError):
    """An implementation returned something that its hook does not know."""

    code = "hook.result"

    def __init__(self, hook: str, plugin: str, found: object, *, allowed: str) -> None:
        super().__init__(hook, plugin, f"it returned {type(found).__name__}, but may return {allowed}")


class HookTimeout(HookError, TimeoutError):
    """The deadline of the dispatch passed while this plugin's implementation was running."""

    code = "hook.timeout"

    def __init__(self, hook: str, plugin: str, seconds: float) -> None:
        super().__init__(
            f"plugin `{plugin}` was running when the {seconds:g} s of `{hook}` were over",
            hint=f"a hook that waits for long should start its own work and return; to go on without it, name "
            f"`{plugin}` under `[policy] deny`",
            hook=hook,
            plugin=plugin,
            retryable=True,
        )
        self.seconds = seconds
