"""Errors of dispatches. Each reaches the skill with the same ``code``.

OpError(SidebandError)                        op.failed
├── OpNotFound(LookupError)                   op.unknown
├── OpUnavailable(RuntimeError)               the code of the plugin's error
├── OpParamsInvalid(ValueError)               op.params
├── OpDenied(PermissionError)                 op.denied
│   ├── ContextRevoked                        op.revoked     the context has ended or was cancelled
│   ├── EgressRefused                         op.egress      the data contains a secret that may not be sent there
│   └── SecretsClosed                         op.secrets     the policy requires that all secrets are known
├── OpFailed(RuntimeError)                    op.failed      raised by handlers; op packages subclass it
│   └── ToolCallFailed                        the code of the call's error: an op called a tool of a skill
├── OpResultInvalid(TypeError)                op.result
├── OpTimeout(TimeoutError)                   op.timeout
├── OpCancelled(RuntimeError)                 op.cancelled
├── EffectInFlight(RuntimeError)              effect.in_flight
├── EffectUnknown(RuntimeError)               effect.unknown
└── LimitExceeded(RuntimeError)               limit.*
CapabilityInvalid(SidebandError, ValueError)  capability.invalid
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, Self

from ..errors import SidebandError, safe_text
from ..exit_codes import ExitCode
from ..suggestions import did_you_mean

__all__ = [
    "CapabilityInvalid",
    "ContextRevoked",
    "EffectInFlight",
    "EffectUnknown",
    "EgressRefused",
    "LimitExceeded",
    "OpCancelled",
    "OpDenied",
    "OpError",
    "OpFailed",
    "OpInternal",
    "OpNotFound",
    "OpParamsInvalid",
    "OpResultInvalid",
    "OpTimeout",
    "OpUnavailable",
    "SecretsClosed",
    "ToolCallFailed",
]


_MAX_OPTIONS = 1_200  # a longer hint is cut when secrets are removed from it, and could not be pasted


def granting(capabilities: Iterable[object]) -> str:
    """Return the command-line options that grant capabilities, quoted for a shell; empty if they are too long."""
    quoted = (str(one).replace("'", "'\"'\"'") for one in capabilities)
    options = " ".join(f"--grant '{one}'" for one in quoted)
    return options if len(options) <= _MAX_OPTIONS else ""


_MAX_DETAIL = 2_000
_MAX_INTEGER = 2**63
_DESCRIBED = ("hint", "code", "retryable", "plugin", "hook", "op")


class OpError(SidebandError):
    """A dispatch ended without a result.

    Attributes:
        nothing_happened: whether the op certainly had no effect, so that an effect with a key may be retried.
        details: the names of attributes whose values are public: they are recorded, and skills get them as attributes
            of the error. Texts are redacted and limited to 2,000 characters. Anything but a number, a bool and ``None``
            is converted to text.
        shared: whether several families raise the error, so that the first part of its ``code`` is not that of one.
    """

    code = "op.failed"
    nothing_happened: bool = False
    details: tuple[str, ...] = ()
    shared: bool = False

    _public: Mapping[str, Any] | None = None

    def clean(self, text: Callable[[str], str]) -> None:
        """See ``SidebandError.clean``."""
        super().clean(text)
        if self.details:
            self._public = self._read_details(text)

    def clean_details(self, data: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        """Apply ``data``, which redacts an object, to the details of a cleaned error."""
        if self._public:
            self._public = data(self._public)

    def as_dict(self) -> dict[str, Any]:
        """Return the error as data, with its ``details`` if it has any."""
        found = super().as_dict()
        if not self.details:
            return found
        public = self._public
        if public is None:
            public = self._read_details(str)
        return {**found, "details": dict(public)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the error that ``as_dict`` described. It has its details, but no other attributes of its class.

        Example:
            >>> OpFailed.from_dict(OpFailed("no", code="geo.unknown").as_dict()).code
            'geo.unknown'
        """
        error = cls.__new__(cls)
        known = {name: data[name] for name in _DESCRIBED if name in data}
        SidebandError.__init__(error, str(data.get("message", "")), **known)
        details = data.get("details") or {}
        error.details = tuple(name for name in details if name in cls.details or not hasattr(error, name))
        for name in error.details:
            setattr(error, name, details[name])  # `as_dict` and `clean` read the attributes
        return error

    def _read_details(self, text: Callable[[str], str]) -> Mapping[str, Any]:
        """Return the details. Those that are not what they must be are omitted: an error must not hide an outcome."""
        found: dict[str, Any] = {}
        for name in self.details if isinstance(self.details, tuple) else ():
            with suppress(Exception):  # a property may raise anything
                found[name] = _plain(getattr(self, name, None), text)
        return found


def _plain(value: Any, text: Callable[[str], str]) -> str | float | bool | None:
    """Return the value of a detail as it is recorded and sent."""
    if value is None or isinstance(value, bool):
        return value
    if (isinstance(value, int) and abs(value) < _MAX_INTEGER) or (isinstance(value, float) and isfinite(value)):
        return value
    return text(str.__str__(value) if isinstance(value, str) else safe_text(value))[:_MAX_DETAIL]


def report_to_author(plugin: str | None, package: str = "") -> str:
    """Return the remedy for a mistake of a plugin. ``package`` is its distribution and version, if known."""
    if plugin is None:
        return "report it to the plugin's author"
    return f"report it to the author of the plugin `{plugin}`" + (f" ({package})" if package else "")


class OpFailed(OpError, RuntimeError):
    """The handler failed. Op packages subclass this error and give each failure its own ``code``."""

    code = "op.failed"


class ToolCallFailed(OpFailed):
    """A tool of a skill that an op has called failed or was not run. ``code`` is that of the error of the call.

    Args:
        tool: ``skill.tool``.
        error: the error as data.
    """

    def __init__(self, tool: str, error: Mapping[str, Any]) -> None:
        super().__init__(
            str(error["message"]),
            hint=str(error["hint"]),
            code=str(error["code"]),
            retryable=bool(error["retryable"]),
        )
        self.tool = tool


class OpNotFound(OpError, LookupError):
    """No installed plugin provides the op."""

    code = "op.unknown"
    exit_code = ExitCode.USAGE

    def __init__(self, op: str, *, known: Iterable[str] = ()) -> None:
        super().__init__(
            f"unknown op `{op}`{did_you_mean(op, known)}",
            hint="list installed ops with `sideband ops list`, or install the package that provides this one",
            op=op,
        )


class OpUnavailable(OpError, RuntimeError):
    """The plugin that provides the op is unavailable: it is denied, broken, misconfigured, or installed twice.

    ``code``, ``hint`` and ``exit_code`` are those of the plugin's error.
    """

    code = "op.unavailable"
    exit_code = ExitCode.CONFIGURATION

    def __init__(self, op: str, reason: SidebandError) -> None:
        super().__init__(
            f"{op} is unavailable: {reason.message}", hint=reason.hint, code=reason.code, op=op, plugin=reason.plugin
        )
        self.exit_code = reason.exit_code


class OpParamsInvalid(OpError, ValueError):
    """The parameters do not match the op's model. The message names each invalid parameter."""

    code = "op.params"
    exit_code = ExitCode.USAGE

    def __init__(self, op: str, problems: str) -> None:
        super().__init__(f"{op}: {problems}", hint=f"show the parameters with `sideband ops show {op}`", op=op)


class OpDenied(OpError, PermissionError):
    """The grant of the call or a guard does not allow the op. The op was not run.

    Args:
        op: the name of the op.
        reason: why it was denied.
        hint: what the user can do.
        plugin: the guard that denied it; ``None`` if the grant does not allow it.
    """

    code = "op.denied"
    exit_code = ExitCode.DENIED

    def __init__(self, op: str, reason: str, *, hint: str = "", plugin: str | None = None) -> None:
        by = f" by `{plugin}`" if plugin else ""
        super().__init__(f"{op} was denied{by}: {reason}", hint=hint, op=op, plugin=plugin)
        self.reason = reason


class ContextRevoked(OpDenied):
    """Code that a handler, tool or hook left running used its context after the end, the deadline or a cancellation."""

    code = "op.revoked"

    def __init__(self, op: str) -> None:
        super().__init__(
            op,
            "its context has ended, is past its deadline or was cancelled",
            hint="wait for all tasks and threads before the function returns, and stop them when it is cancelled",
        )


class OpInternal(OpDenied):
    """The op is internal: plugins and undo plans use it, and skills and users cannot dispatch it by name."""

    code = "op.internal"

    def __init__(self, op: str) -> None:
        super().__init__(
            op,
            "it is internal, used to undo effects or by a plugin",
            hint="undo an effect with `sideband undo EFFECT`, or use another op of the family",
        )


class EgressRefused(OpDenied):
    """Data that was about to be sent contains a known secret that is not bound to its destination. Nothing was sent."""

    code = "op.egress"

    def __init__(self, op: str, name: str, part: str, audience: str | None) -> None:
        where = f"be sent to {audience}" if audience else "appear there"
        super().__init__(
            op,
            f"the {part} contains the secret `{name}`, which must not {where}",
            hint="let the host add the secret: pass its handle in `auth`, and bind it to its origins",
        )


class SecretsClosed(OpDenied):
    """The policy ``require_open_secrets`` forbids sending data while the values of some secrets are unknown."""

    code = "op.secrets"

    def __init__(self, op: str, closed: Mapping[str, str]) -> None:
        sources = "; ".join(f"`{name}` is closed: {reason}" for name, reason in sorted(closed.items()))
        super().__init__(
            op,
            f"`[policy] require_open_secrets` is set, and a source of secrets is not open ({sources})",
            hint="open it before, for example with SIDEBAND_SECRETS_PASSPHRASE",
        )


class OpResultInvalid(OpError, TypeError):
    """The result does not match the declared type. The effect has happened; its result is withheld."""

    code = "op.result"

    def __init__(self, op: str, problems: str, *, plugin: str | None = None, package: str = "") -> None:
        super().__init__(
            f"the result of {op} does not match its declared type: {problems}",
            hint=f"{report_to_author(plugin, package)}; the effect itself has happened",
            op=op,
            plugin=plugin,
        )


class OpTimeout(OpError, TimeoutError):
    """The op exceeded its timeout and was cancelled."""

    code = "op.timeout"

    def __init__(self, op: str, seconds: float) -> None:
        super().__init__(
            f"{op} timed out after {seconds:g} s",
            hint="request less at once, or increase the timeout",
            op=op,
            retryable=True,
        )
        self.seconds = seconds


class OpCancelled(OpError, RuntimeError):
    """The dispatch was cancelled by the skill, or because its call ended."""

    code = "op.cancelled"

    def __init__(self, op: str, reason: str = "its call ended") -> None:
        super().__init__(f"{op} was cancelled: {reason}", op=op, retryable=True)


class EffectInFlight(OpError, RuntimeError):
    """Another dispatch with this idempotency key is still running."""

    code = "effect.in_flight"

    def __init__(self, op: str, key: str) -> None:
        super().__init__(
            f"{op}: an effect with the key `{key}` is already running",
            hint="wait for it to end, or use another key for a different effect",
            op=op,
            retryable=True,
        )


class EffectUnknown(OpError, RuntimeError):
    """An earlier effect with this key may or may not have happened. It is never repeated automatically."""

    code = "effect.unknown"

    def __init__(self, op: str, key: str, effect: str) -> None:
        super().__init__(
            f"{op}: it is unknown whether the effect with the key `{key}` happened (effect {effect})",
            hint=f"check the target and `sideband audit why {effect}`; to repeat the effect, use a new key",
            op=op,
        )
        self.effect = effect


_COUNTED = {
    "dispatches": " ops per call",
    "in_flight": " concurrent ops per call",
    "nested_calls": " tool calls within tool calls",
    "nested_dispatches": " nested ops",
    "params": " values per request",
    "unread_bytes": " bytes",
}


class LimitExceeded(OpError, RuntimeError):
    """A limit of the call was reached. ``code`` is ``limit.`` and the limit's name."""

    code = "limit.exceeded"

    def __init__(self, limit: str, allowed: int, *, op: str | None = None, retryable: bool = False) -> None:
        super().__init__(
            f"the limit `{limit}` of {allowed:,}{_COUNTED.get(limit, '')} has been reached",
            hint="wait until earlier ops have ended" if retryable else "split the work into several calls",
            code=f"limit.{limit}",
            retryable=retryable,
            op=op,
        )


class CapabilityInvalid(SidebandError, ValueError):
    """A capability cannot be parsed, or names a field that its family does not declare."""

    code = "capability.invalid"
    exit_code = ExitCode.USAGE

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"capability `{text}`: {problem}",
            hint="write family, or family:field=value|value,field=value (`http:host=api.github.com,method=GET`)",
        )
