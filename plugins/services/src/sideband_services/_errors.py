"""Errors of services.

ServiceError(OpFailed)                    services.error
├── ServiceUnknown(LookupError)           services.unknown    no skill provides the service
├── ServiceProviderUnknown(LookupError)   services.provider   this skill does not provide it
├── ServiceRefused(PermissionError)       services.choice     the configuration chooses another skill
└── ServiceCallFailed(RuntimeError)       services.failed     the skill that provides it failed
"""

from __future__ import annotations

from collections.abc import Sequence

from sideband.exit_codes import ExitCode
from sideband.ops import OpFailed, ToolCallFailed
from sideband.suggestions import did_you_mean

_SHOWN = 20


class ServiceError(OpFailed):
    """A service could not be called, or failed."""

    code = "services.error"


class ServiceUnknown(ServiceError, LookupError):
    """No skill provides the service."""

    code = "services.unknown"
    exit_code = ExitCode.CONFIGURATION
    nothing_happened = True

    def __init__(self, name: str, known: Sequence[str]) -> None:
        available = f"available: {_listed(known)}" if known else "no skill provides a service that may be called here"
        super().__init__(
            f"no skill provides the service `{name}`{did_you_mean(name, known)}; {available}",
            hint=f"add a skill with `sideband.provides: {name}=TOOL` under `metadata` of its SKILL.md",
        )


class ServiceProviderUnknown(ServiceError, LookupError):
    """The skill that was asked for does not provide the service.

    Args:
        name: the service.
        provider: the skill.
        known: the skills that provide it.
        configured: whether the configuration names the skill, rather than the caller.
    """

    code = "services.provider"
    exit_code = ExitCode.CONFIGURATION
    nothing_happened = True

    def __init__(self, name: str, provider: str, known: Sequence[str], *, configured: bool) -> None:
        key = f"`[plugins.services] providers.{name}` is" if configured else "`provider` is"
        super().__init__(
            f"{key} `{provider}`, which does not provide the service `{name}`{did_you_mean(provider, known)}; "
            f"providers: {_listed(known)}",
            hint="correct the name, or remove it to use the first provider",
        )


class ServiceRefused(ServiceError, PermissionError):
    """The caller asked for another skill than the one that the configuration chooses."""

    code = "services.choice"
    exit_code = ExitCode.DENIED
    nothing_happened = True

    def __init__(self, name: str, provider: str, chosen: str) -> None:
        super().__init__(
            f"the service `{name}` was requested from `{provider}`, but the configuration chooses `{chosen}`",
            hint=f"omit `provider`, or change `[plugins.services] providers.{name}`",
        )


class ServiceCallFailed(ServiceError, RuntimeError):
    """The skill that provides the service failed, or could not be called.

    Attributes:
        service: the name of the service.
        provider: the name of the skill.
        cause: the code of the error of its call, such as ``skill.raised``, ``call.timeout`` or ``grant.required``.
    """

    code = "services.failed"
    details = ("service", "provider", "cause")

    def __init__(self, name: str, provider: str, error: ToolCallFailed) -> None:
        super().__init__(
            f"the service `{name}` of the skill `{provider}` failed: {error.message}",
            hint=error.hint,
            retryable=error.retryable,
        )
        self.service, self.provider, self.cause = name, provider, error.code
        self.exit_code = error.exit_code


ERRORS = (ServiceRefused, ServiceProviderUnknown, ServiceError, ServiceCallFailed, ServiceUnknown)
"""The errors that skills can catch by class."""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
