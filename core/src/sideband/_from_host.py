"""The mark of parameters that the host fills in. Uses the standard library only, because workers have it too."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

_MARK = "sideband_from_host"


class FromHost:
    """Marks a parameter of an op or a tool as a value of the host. Callers neither see nor set it.

    The parameter is not part of any schema. A value that a model, a skill, a guard or a user passes for it is ignored.

    Args:
        value: ``principal``, on whose behalf the call runs; ``session``, the id of the agent's session; ``channel``,
            the channel of the user, such as ``cli``; or ``approval_mode``, when a person is asked about changes:
            ``manual``, ``assist``, ``semi``, ``full`` or ``plan``. Without an agent, ``session`` and ``channel`` are
            ``None``; without an agent, or a guard that has modes, ``approval_mode`` is ``manual``.

    Example:
        >>> class NoteParams(BaseModel):
        ...     text: str
        ...     author: Annotated[str, FromHost("principal")]
        ...     session: Annotated[str | None, FromHost("session")] = None
        >>> list(NoteParams.model_json_schema()["properties"])
        ['text']
    """

    values: ClassVar[tuple[str, ...]] = ("approval_mode", "channel", "principal", "session")
    # The values of all marks of the process. Without any mark, schemas need not be searched.
    made: ClassVar[set[str]] = set()

    def __init__(self, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"expected the name of a value, got {value!r}")
        self.value = value
        self.made.add(value)

    def __repr__(self) -> str:
        return f"FromHost({self.value!r})"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any = None) -> dict[str, Any]:
        if handler is None:  # the mark is the class itself: `self` is then the type, and `source` the handler
            name, mark = source.field_name, 'FromHost("principal")'
            raise TypeError(f"`{name}`: `FromHost` must name a value: write `{name}: Annotated[str, {mark}]`")
        schema = handler(source)
        return {**schema, "metadata": {**schema.get("metadata", {}), _MARK: self.value}}

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        # Pydantic, which workers do not have, calls this. The exception makes it omit the parameter.
        raise sys.modules["pydantic_core"].PydanticOmit


def count_marks(schema: object) -> int:
    """Return the number of marked parameters in a schema of pydantic's core."""
    if isinstance(schema, Mapping):
        return (_MARK in schema) + sum(map(count_marks, schema.values()))
    return sum(map(count_marks, schema)) if isinstance(schema, list | tuple) else 0
