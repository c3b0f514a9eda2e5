"""Convert exceptions of handlers and validators to the errors of ``sideband.ops``, which the broker raises.

OpError(SidebandError)              see ops/_errors.py
├── KeyReused(ValueError)           effect.key
└── EffectMissing(LookupError)      effect.missing
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..errors import SidebandError, place_of, safe_text
from ..exit_codes import ExitCode
from ..ops import OpError, OpFailed
from ..ops._errors import report_to_author
from ..suggestions import did_you_mean
from ..validation import problem_text

# Each problem that pydantic lists costs microseconds and half a kilobyte, and a skill can cause millions of them.
_MAX_LISTED, _MAX_SHOWN = 1_000, 10
_MAX_VALUE = 1_000

# Pydantic names Python types. Parameters are JSON, so use the names of JSON types.
_BRANCHES = frozenset(("bool", "bytes", "float", "int", "str"))


class KeyReused(OpError, ValueError):
    """An idempotency key was already used for another effect."""

    code = "effect.key"

    def __init__(self, op: str, key: str) -> None:
        super().__init__(
            f"{op}: key `{key}` was already used with another op or other parameters",
            hint="use a new key for each op and set of parameters",
            op=op,
        )


class EffectMissing(OpError, LookupError):
    """No effect with this id is in the ledger."""

    code = "effect.missing"
    exit_code = ExitCode.USAGE

    def __init__(self, effect: str, *, kind: str = "effect") -> None:
        super().__init__(
            f"unknown {kind} `{effect[:80]}`", hint="run `sideband audit query` to list the effects with their ids"
        )


def as_op_error(error: Exception, *, op: str, plugin: str | None, package: str = "") -> OpError:
    """Return the typed error for an exception that a handler raised.

    Args:
        error: the exception.
        op: the name of the op.
        plugin: the name of its plugin, if known.
        package: the distribution and version of the plugin, for the hint.
    """
    remedy = report_to_author(plugin, package)
    if isinstance(error, SidebandError) and not hasattr(error, "hint"):
        problem = f"`{type(error).__name__}` was raised without calling `super().__init__(message)`: {safe_text(error)}"
        return OpFailed(f"{op} failed: {problem}", hint=remedy, code=error.code, op=op, plugin=plugin)
    if isinstance(error, OpError):
        error.op = error.op or op
        error.plugin = error.plugin or plugin
        return error
    if isinstance(error, SidebandError):
        failed = OpFailed(
            error.message, hint=error.hint, code=error.code, retryable=error.retryable, op=op, plugin=plugin
        )
        failed.exit_code = error.exit_code
        return failed
    if isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        return as_op_error(error.exceptions[0], op=op, plugin=plugin, package=package)
    problem = f"{type(error).__name__}: {safe_text(error)}"
    failed = OpFailed(f"{op} failed: {problem}", hint=remedy, op=op, plugin=plugin)
    failed.raised_at = place_of(error)
    return failed


def validation_problems(
    error: ValidationError, *, whole: str = "params", known: Iterable[str] = (), shown: Container[str] = ()
) -> str:
    """Return the problems that pydantic found, each with its key, and with its value if it may be recorded.

    Args:
        error: the error of pydantic.
        whole: the name of the whole value.
        known: the names of the parameters.
        shown: the parameters whose values may appear. Others may be secret.
    """
    count = error.error_count()
    if count > _MAX_LISTED:
        return f"{count:,} problems in {whole}"
    found = error.errors(include_url=False, include_context=False)
    # Pydantic lists one problem for each branch of a union. Merge them into one.
    merged: dict[tuple[str, str], dict[str, None]] = {}
    for problem in found[:_MAX_SHOWN]:
        where, what, value = _problem(problem, whole, known, shown)
        merged.setdefault((where, value), {})[what] = None
    lines = [
        f"{where}{' or '.join(whats).replace(' or expected ', ' or ')}{value}"
        for (where, value), whats in merged.items()
    ]
    return "; ".join(lines if count <= _MAX_SHOWN else [*lines, f"and {count - _MAX_SHOWN:,} more"])


def _quoted(value: object) -> str:
    """Return a value for a message. Never truncate it, because a truncated secret would not be redacted."""
    text = str(value)
    return f"got {text!r}" if len(text) <= _MAX_VALUE else f"got {len(text):,} characters"


def _problem(problem: ErrorDetails, whole: str, known: Iterable[str], shown: Container[str]) -> tuple[str, str, str]:
    """Return the location, the description, and the value if it may be shown."""
    key = ".".join(_path(problem["loc"])) or whole
    if problem["type"] == "extra_forbidden":
        return f"unknown parameter `{key}`{did_you_mean(key, known)}", "", ""
    if problem["type"] == "missing":
        return f"`{key}` is required", "", ""
    value = f" ({_quoted(problem['input'])})" if key in shown else ""
    return f"`{key}`: ", problem_text(problem), value


def _path(location: tuple[int | str, ...]) -> list[str]:
    """Return the keys and indices of a location, without the names that pydantic adds for branches of unions."""
    steps = [str(step) for step in location]
    steps = [step for step in steps if "[" not in step]
    return steps[:-1] if len(steps) > 1 and steps[-1] in _BRANCHES else steps
