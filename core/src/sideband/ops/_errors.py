"""What a dispatch can end with, other than its result. Each reaches the skill with the same ``code``.

OpError(SidebandError)                        op.failed
├── OpNotFound(LookupError)                   op.unknown
├── OpUnavailable(RuntimeError)               what is wrong with its plugin
├── OpParamsInvalid(ValueError)               op.params
├── OpDenied(PermissionError)                 op.denied
│   └── EgressRefused                         op.egress      a secret was on its way to where it must not go
├── OpFailed(RuntimeError)                    op.failed      what a handler raises, or a subclass of it
├── OpResultInvalid(TypeError)                op.result
├── OpTimeout(TimeoutError)                   op.timeout
├── OpCancelled(RuntimeError)                 op.cancelled
├── EffectInFlight(RuntimeError)              effect.in_flight
├── EffectUnknown(RuntimeError)               effect.unknown
└── LimitExceeded(RuntimeError)               limit.*
CapabilityInvalid(SidebandError, ValueError)  capability.invalid
"""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ..suggestions import did_you_mean

__all__ = [
    "CapabilityInvalid",
    "EffectInFlight",
    "EffectUnknown",
    "EgressRefused",
    "LimitExceeded",
    "OpCancelled",
    "OpDenied",
    "OpError",
    "OpFailed",
    "OpNotFound",
    "OpParamsInvalid",
    "OpResultInvalid",
    "OpTimeout",
    "OpUnavailable",
]


def granting(capability: object) -> str:
    """The option that grants a capability, as a shell takes it; a capability may have quotes of its own."""
    quoted = str(capability).replace("'", "'\"'\"'")
    return f"--grant '{quoted}'"


class OpError(SidebandError):
    """One dispatch ended without a result.

    Attributes:
        nothing_happened: whether the world is as it was before, so that an effect with a key may be tried again.
    """

    code = "op.failed"
    nothing_happened: bool = False


class OpFailed(OpError, RuntimeError):
    """The handler could not do it. Op packages subclass it and give each failure its own ``code``."""

    code = "op.failed"


class OpNotFound(OpError, LookupError):
    """No installed plugin provides this op."""

    code = "op.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, op: str, *, known: Iterable[str] = ()) -> None:
        super().__init__(
            f"there is no op `{op}`{did_you_mean(op, known)}",
            hint="`sideband ops list` shows what is there; install the package that has it",
            op=op,
        )


class OpUnavailable(OpError, RuntimeError):
    """The plugin that has the op can't be used: it is denied, broken, misconfigured, or there are two of it.

    Its ``code``, ``hint`` and ``exit_code`` are those of what is wrong with the plugin.
    """

    code = "op.unavailable"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, op: str, reason: SidebandError) -> None:
        super().__init__(
            f"{op} can't be used: {reason.message}", hint=reason.hint, code=reason.code, op=op, plugin=reason.plugin
        )
        self.exit_code = reason.exit_code


class OpParamsInvalid(OpError, ValueError):
    """The parameters do not fit the op's model. The message names each bad parameter."""

    code = "op.params"
    exit_code = ExitCode.USAGE

    def __init__(self, op: str, problems: str) -> None:
        super().__init__(f"{op}: {problems}", hint=f"`sideband ops show {op}` shows its parameters", op=op)


class OpDenied(OpError, PermissionError):
    """The grant of the call, or a decision of a guard, does not allow it. Nothing was executed."""

    code = "op.denied"
    exit_code = ExitCode.DENIED

    def __init__(self, op: str, reason: str, *, hint: str = "", plugin: str | None = None) -> None:
        super().__init__(f"{op} was refused: {reason}", hint=hint, op=op, plugin=plugin)
        self.reason = reason


class EgressRefused(OpDenied):
    """A known secret stood in what was about to be sent to somebody who must not have it. Nothing was sent."""

    code = "op.egress"

    def __init__(self, op: str, name: str, part: str, audience: str | None) -> None:
        where = f"the {part}, on its way to {audience}," if audience else f"the {part}"
        super().__init__(
            op,
            f"{where} holds the secret `{name}`, which must not go there",
            hint="let the host add it: pass its handle in `auth`, and bind it to the origins that it is meant for",
        )


class OpResultInvalid(OpError, TypeError):
    """The handler returned something else than it declares. The effect did happen; its result is withheld."""

    code = "op.result"

    def __init__(self, op: str, problems: str, *, plugin: str | None = None) -> None:
        super().__init__(
            f"{op} returned what it does not declare: {problems}",
            hint="report it to the plugin's author; the effect itself has happened",
            op=op,
            plugin=plugin,
        )


class OpTimeout(OpError, TimeoutError):
    """The op did not end within its time limit, and was cancelled."""

    code = "op.timeout"

    def __init__(self, op: str, seconds: float) -> None:
        super().__init__(
            f"{op} did not end within {seconds:g} s",
            hint="ask for less at once, or give it longer",
            op=op,
            retryable=True,
        )
        self.seconds = seconds


class OpCancelled(OpError, RuntimeError):
    """The dispatch was cancelled: by the skill, or because its call ended."""

    code = "op.cancelled"

    def __init__(self, op: str, reason: str = "its call ended") -> None:
        super().__init__(f"{op} was cancelled: {reason}", op=op, retryable=True)


class EffectInFlight(OpError, RuntimeError):
    """Another dispatch holds this idempotency key and has not ended."""

    code = "effect.in_flight"

    def __init__(self, op: str, key: str) -> None:
        super().__init__(
            f"{op}: an effect with the key `{key}` is under way",
            hint="wait for it, or use another key if this is another effect",
            op=op,
            retryable=True,
        )


class EffectUnknown(OpError, RuntimeError):
    """An earlier effect with this key may or may not have happened; it is never repeated silently."""

    code = "effect.unknown"

    def __init__(self, op: str, key: str, effect: str) -> None:
        super().__init__(
            f"{op}: whether the effect with the key `{key}` happened is not known (effect {effect})",
            hint=f"look at the world and at `sideband audit why {effect}`, then decide with a new key",
            op=op,
        )


_COUNTED = {
    "dispatches": " ops in one call",
    "in_flight": " ops of one call at a time",
    "nested_dispatches": " ops within one another",
    "params": " values in one request",
    "unread_bytes": " bytes",
}


class LimitExceeded(OpError, RuntimeError):
    """A limit of the call was reached. ``code`` is ``limit.`` and the limit's name."""

    code = "limit.exceeded"

    def __init__(self, limit: str, allowed: int, *, op: str | None = None, retryable: bool = False) -> None:
        super().__init__(
            f"the limit `{limit}` of {allowed:,}{_COUNTED.get(limit, '')} is reached",
            hint="wait for earlier ones to end" if retryable else "split the work into several calls",
            code=f"limit.{limit}",
            retryable=retryable,
            op=op,
        )


class CapabilityInvalid(SidebandError, ValueError):
    """A capability that can't be parsed, or that names a field its family does not have."""

    code = "capability.invalid"
    exit_code = ExitCode.USAGE

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"capability `{text}`: {problem}",
            hint="write family, or family:field=value|value,field=value (`http:host=api.github.com,method=GET`)",
        )
