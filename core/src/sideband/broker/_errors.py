"""The broker raises the errors of ``sideband.ops``; this module turns whatever a handler raised into one of them.

OpError(SidebandError)              see ops/_errors.py
├── KeyReused(ValueError)           effect.key
└── EffectMissing(LookupError)      effect.missing
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .._errors import SidebandError
from ..ops import OpError, OpFailed
from ..ops._errors import closest

__all__ = ["EffectMissing", "KeyReused", "as_op_error", "safe_text", "validation_problems"]

# Each one that pydantic lists costs microseconds and half a kilobyte, and a skill can cause millions of them.
_MOST_LISTED, _MOST_TOLD = 1_000, 10
_LONGEST_VALUE = 1_000


class KeyReused(OpError, ValueError):
    """An idempotency key was used before for another effect."""

    code = "effect.key"

    def __init__(self, op: str, key: str) -> None:
        super().__init__(
            f"{op}: the key `{key}` belongs to another effect",
            hint="a key names one op with one set of parameters; use a new one",
            op=op,
        )


class EffectMissing(OpError, LookupError):
    """The ledger knows no effect of this id."""

    code = "effect.missing"
    exit_code = 2

    def __init__(self, effect: str) -> None:
        super().__init__(
            f"the ledger has no effect `{effect[:80]}`", hint="`sideband audit query` lists the effects with their ids"
        )


def safe_text(error: BaseException) -> str:
    """What an exception says, even if its own ``__str__`` raises. Not cut: half a secret is not recognised."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  a foreign __str__ may raise anything
        return "(its text can't be read)"


def as_op_error(error: Exception, *, op: str, plugin: str | None) -> OpError:
    """The error that a dispatch answers with for what its handler raised."""
    if isinstance(error, OpError):
        error.op = error.op or op
        error.plugin = error.plugin or plugin
        return error
    if isinstance(error, SidebandError):
        return OpFailed(
            error.message, hint=error.hint, code=error.code, retryable=error.retryable, op=op, plugin=plugin
        )
    if isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        return as_op_error(error.exceptions[0], op=op, plugin=plugin)
    return OpFailed(f"{op} failed: {type(error).__name__}: {safe_text(error)}", op=op, plugin=plugin)


def validation_problems(
    error: ValidationError, *, whole: str = "params", known: Iterable[str] = (), shown: Container[str] = ()
) -> str:
    """The problems that pydantic found, each with its key, and with the value where the ledger may hold it too.

    Args:
        whole: what to call the whole value.
        known: the names of the parameters.
        shown: the parameters whose values may be named; others may be secret.
    """
    count = error.error_count()
    if count > _MOST_LISTED:
        return f"{count:,} things in {whole} are wrong"
    found = error.errors(include_url=False, include_context=False)
    told = [_problem(problem, whole, known, shown) for problem in found[:_MOST_TOLD]]
    return "; ".join(told if count <= _MOST_TOLD else [*told, f"and {count - _MOST_TOLD:,} more"])


def _quoted(value: object) -> str:
    """A value in a message, whole or not at all: half a secret would not be recognised by the redactor."""
    text = str(value)
    return f"it is {text!r}" if len(text) <= _LONGEST_VALUE else f"it has {len(text):,} characters"


def _problem(problem: ErrorDetails, whole: str, known: Iterable[str], shown: Container[str]) -> str:
    key = ".".join(map(str, problem["loc"])) or whole
    if problem["type"] == "extra_forbidden":
        return f"there is no parameter `{key}`{closest(key, known)}"
    if problem["type"] == "missing":
        return f"`{key}` is required"
    value = f" ({_quoted(problem['input'])})" if key in shown else ""
    return f"`{key}`: {problem['msg']}{value}"
