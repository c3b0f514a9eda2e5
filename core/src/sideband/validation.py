"""One wording for the problems that pydantic finds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["problem_text"]

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "bytes_type": "bytes",
    "dict_type": "an object",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "int_type": "an integer",
    "list_type": "a list",
    "set_type": "a list",
    "string_type": "a string",
    "tuple_type": "a list",
}
_LENGTH = re.compile(r"\w+ should have (at (?:least|most) .+) after validation, not (.+)")


def problem_text(problem: ErrorDetails) -> str:
    """Return what is wrong with a value, without its name and the value itself.

    Args:
        problem: one item of ``ValidationError.errors()``.

    Example:
        >>> from pydantic import TypeAdapter, ValidationError
        >>> try:
        ...     TypeAdapter(float).validate_python("abc")
        ... except ValidationError as error:
        ...     problem_text(error.errors()[0])
        'expected a number'
    """
    if problem["type"] in _EXPECTED:
        return f"expected {_EXPECTED[problem['type']]}"
    text = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if problem["type"].startswith(("greater_than", "less_than")):
        text = text.replace("Input should be ", "expected a number ", 1)
    text = _LENGTH.sub(r"expected \1, got \2", text)
    return text.replace("Input should be ", "expected ", 1).replace("String should ", "the text must ", 1)
