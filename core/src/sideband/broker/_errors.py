"""The broker raises the errors of ``sideband.ops``; this module turns whatever a handler raised into one of them.

OpError(SidebandError)              see ops/_errors.py
├── KeyReused(ValueError)           effect.key
└── EffectMissing(LookupError)      effect.missing
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..errors import SidebandError
from ..exit_codes import ExitCode
from ..ops import OpError, OpFailed
from ..suggestions import did_you_mean

# Each one that pydantic lists costs microseconds and half a kilobyte, and a skill can cause millions of them.
_MOST_LISTED, _MOST_TOLD = 1_000, 10
_LONGEST_VALUE = 1_000

# Pydantic's words are Python's; these are those of JSON, in which parameters are written.
_EXPECTED = {
    "bool_type": "true or false",
    "bytes_type": "bytes",
    "dict_type": "an object",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "string_type": "a text",
}
_BRANCHES = frozenset(("bool", "bytes", "float", "int", "str"))


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
    exit_code = ExitCode.USAGE

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
    # What fits no branch of a union is one problem, and pydantic tells one for each branch.
    told: dict[tuple[str, str], dict[str, None]] = {}
    for problem in found[:_MOST_TOLD]:
        where, what, value = _problem(problem, whole, known, shown)
        told.setdefault((where, value), {})[what] = None
    lines = [
        f"{where}{' or '.join(whats).replace(' or expected ', ' or ')}{value}" for (where, value), whats in told.items()
    ]
    return "; ".join(lines if count <= _MOST_TOLD else [*lines, f"and {count - _MOST_TOLD:,} more"])


def _quoted(value: object) -> str:
    """A value in a message, whole or not at all: half a secret would not be recognised by the redactor."""
    text = str(value)
    return f"it is {text!r}" if len(text) <= _LONGEST_VALUE else f"it has {len(text):,} characters"


def _problem(problem: ErrorDetails, whole: str, known: Iterable[str], shown: Container[str]) -> tuple[str, str, str]:
    """Where it is, what is wrong, and the value if that may be named."""
    key = ".".join(_path(problem["loc"])) or whole
    if problem["type"] == "extra_forbidden":
        return f"there is no parameter `{key}`{did_you_mean(key, known)}", "", ""
    if problem["type"] == "missing":
        return f"`{key}` is required", "", ""
    value = f" ({_quoted(problem['input'])})" if key in shown else ""
    return f"`{key}`: ", _in_words(problem), value


def _path(location: tuple[int | str, ...]) -> list[str]:
    """The keys and indices to a value, without what pydantic puts in between to name the branches of a union."""
    steps = [str(step) for step in location]
    steps = [step for step in steps if "[" not in step]
    return steps[:-1] if len(steps) > 1 and steps[-1] in _BRANCHES else steps


def _in_words(problem: ErrorDetails) -> str:
    if problem["type"] in _EXPECTED:
        return f"expected {_EXPECTED[problem['type']]}"
    return problem["msg"].removeprefix("Value error, ").replace("Input should be ", "expected ", 1)
