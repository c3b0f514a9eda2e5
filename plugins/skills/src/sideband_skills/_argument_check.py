"""Validation of a tool's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from sideband.suggestions import did_you_mean
from sideband.validation import problem_text

from ._problems import shown
from ._shape import Form
from ._value_types import type_of


@define
class ArgumentCheck:
    """The implementation of ``ToolSpec.validate``: converts arguments to the values that the function receives.

    Args:
        form: the form of a structure with the arguments. The validator is built at the first call.
        hidden: the arguments that only the host passes, and that no message suggests.
    """

    form: Form
    hidden: frozenset[str] = frozenset()
    _adapter: TypeAdapter[Any] | None = field(default=None, init=False)

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given arguments, converted to JSON data and bytes. Defaults are not filled in.

        Raises:
            ValueError: if an argument is invalid; the message names each one with its value.
        """
        if self._adapter is None:
            self._adapter = TypeAdapter(type_of(self.form))
        given = dict(arguments)
        try:
            checked: dict[str, Any] = self._adapter.validate_python(given)
        except ValidationError as error:
            problems = [self._describe(details, given) for details in error.errors(include_url=False)]
            raise ValueError("; ".join(dict.fromkeys(problems))) from None
        return checked

    def _describe(self, details: ErrorDetails, given: Mapping[str, Any]) -> str:
        path, name = _path(details["loc"], given)
        match details["type"]:
            case "missing":
                return f"`{path}` is required"
            case "extra_forbidden":
                known = [one for one in self.form[2] if one not in self.hidden]
                closest = did_you_mean(name, known) if path == name else ""
                return f"unknown argument `{path}`{closest}"
            case _:
                return f"`{path}` = {shown(details['input'])}: {problem_text(details)}"


def _path(location: Sequence[int | str], given: Any) -> tuple[str, str]:
    """Return the path of a value and its last step, without the union branches that pydantic inserts."""
    path, current = "", given
    last = len(location) - 1
    for index, step in enumerate(location):
        if isinstance(current, Mapping) and (step in current or index in (0, last)):
            path = f"{path}.{step}" if path else str(step)
            current = current.get(step)
        elif isinstance(current, list | tuple) and isinstance(step, int) and step < len(current):
            path = f"{path}[{step}]"
            current = current[step]
    return path, str(location[-1]) if location else ""
