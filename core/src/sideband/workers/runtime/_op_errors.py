"""The errors of ops inside a worker. The class is chosen by the code that the host sends, never by a text.

OpError(Exception)                       any other code
├── OpDenied(PermissionError)            op.denied, op.internal, op.revoked
│   ├── EgressRefused                    op.egress
│   └── SecretsClosed                    op.secrets
├── OpTimeout(TimeoutError)              op.timeout, op.unanswered
├── OpNotFound(LookupError)              op.unknown
├── OpUnavailable(RuntimeError)          op.unavailable, config.invalid, plugin.*
├── OpParamsInvalid(ValueError)          op.params
├── OpResultInvalid(TypeError)           op.result
├── OpCancelled(RuntimeError)            op.cancelled
├── EffectInFlight(RuntimeError)         effect.in_flight
├── EffectUnknown(RuntimeError)          effect.unknown
└── LimitExceeded(RuntimeError)          limit.*

The generated module of an op family has the classes of its own errors, and lists them by code in ``_ERRORS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class OpError(Exception):
    """An op ended without a result.

    Attributes:
        code: the stable code, such as ``op.denied`` or ``http.timeout``.
        message: one sentence that describes the problem.
        op: the op's name.
        retryable: whether the same request may succeed later.
        hint: what the user can do, or an empty string.

    Example:
        >>> try:
        ...     await http.get("https://example.org")
        ... except OpError as error:
        ...     if not error.retryable:
        ...         raise
    """

    code: str = "op.failed"
    details: tuple[str, ...] = ()
    """The names of the attributes that the family adds to the error."""

    def __init__(
        self, message: str, *, code: str | None = None, op: str = "", retryable: bool = False, hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.op = op
        self.retryable = retryable
        self.hint = hint

    def __str__(self) -> str:
        # `KeyError` and `OSError`, which can be bases of an error of a family, would format the message.
        return str(self.message)

    @classmethod
    def from_wire(cls, error: Any, op: str) -> OpError:
        """Return the error for an ``__error__``, which is an object, or a string from simple hosts.

        Args:
            error: the value of ``__error__``.
            op: the op that was dispatched. The failed op may be another one, which it dispatched itself.
        """
        if not isinstance(error, dict):
            return cls(str(error), op=op)
        code = str(error.get("code", "op.failed"))
        kind = _kind(code, op)
        found = kind(
            str(error.get("message", "")),
            code=code,
            op=str(error.get("op", op)),
            retryable=error.get("retryable") is True,
            hint=str(error.get("hint", "")),
        )
        details = error.get("details")
        for name in kind.details:
            setattr(found, name, details.get(name) if isinstance(details, dict) else None)
        return found


class OpDenied(OpError, PermissionError):
    """The grant of the call or a guard does not allow the op. The op was not run."""

    code = "op.denied"


class EgressRefused(OpDenied):
    """Data that was about to be sent contains a known secret that is not bound to its destination. Nothing was sent."""

    code = "op.egress"


class SecretsClosed(OpDenied):
    """The policy forbids sending data while the values of some secrets are unknown."""

    code = "op.secrets"


class OpTimeout(OpError, TimeoutError):
    """The op exceeded its timeout and was cancelled, or the host did not answer in time."""

    code = "op.timeout"


class OpNotFound(OpError, LookupError):
    """No installed plugin provides the op."""

    code = "op.unknown"


class OpUnavailable(OpError, RuntimeError):
    """The plugin that provides the op is unavailable: it is denied, broken, misconfigured, or installed twice."""

    code = "op.unavailable"


class OpParamsInvalid(OpError, ValueError):
    """The parameters do not match the op's model. The message names each invalid parameter."""

    code = "op.params"


class OpResultInvalid(OpError, TypeError):
    """The result does not match the declared type. The effect has happened; its result is withheld."""

    code = "op.result"


class OpCancelled(OpError, RuntimeError):
    """The dispatch was cancelled."""

    code = "op.cancelled"


class EffectInFlight(OpError, RuntimeError):
    """Another dispatch with this idempotency key is still running."""

    code = "effect.in_flight"


class EffectUnknown(OpError, RuntimeError):
    """It is unknown whether an earlier effect with this key has happened. It is never repeated automatically."""

    code = "effect.unknown"


class LimitExceeded(OpError, RuntimeError):
    """A limit of the call was reached. ``code`` is ``limit.`` and the limit's name."""

    code = "limit.exceeded"


_GENERAL: Mapping[str, type[OpError]] = {
    "config.invalid": OpUnavailable,
    "effect.in_flight": EffectInFlight,
    "effect.unknown": EffectUnknown,
    "limit": LimitExceeded,
    "op.cancelled": OpCancelled,
    "op.denied": OpDenied,
    "op.egress": EgressRefused,
    "op.internal": OpDenied,
    "op.params": OpParamsInvalid,
    "op.result": OpResultInvalid,
    "op.revoked": OpDenied,
    "op.secrets": SecretsClosed,
    "op.timeout": OpTimeout,
    "op.unanswered": OpTimeout,
    "op.unavailable": OpUnavailable,
    "op.unknown": OpNotFound,
    "plugin": OpUnavailable,
}
"""The classes by code, or by the first part of a code."""


def _kind(code: str, op: str) -> type[OpError]:
    """Return the class for a code: a general one, one of the op's family or of the family with this name, or shared."""
    first = code.partition(".")[0]
    general = _GENERAL.get(code) or _GENERAL.get(first)
    if general is not None:
        return general
    for module in (op.partition(".")[0], first, "_shared_errors"):
        kind = _errors_of(module).get(code)
        if kind is not None:
            return kind
    return OpError


def _errors_of(module: str) -> Mapping[str, type[OpError]]:
    """Return the errors of a generated module by code; none if there is no such module."""
    from importlib import import_module  # noqa: PLC0415  few calls see an error

    try:
        errors: Mapping[str, type[OpError]] = vars(import_module(f"sideband_sdk.{module}"))["_ERRORS"]
    except Exception:  # noqa: BLE001  the plugin's part of the module may raise anything
        return {}
    return errors
