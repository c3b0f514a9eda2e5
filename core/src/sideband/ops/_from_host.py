"""Parameters that the host fills in, whatever the caller sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from attrs import field, frozen
from attrs.validators import instance_of
from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticOmit

from ..contexts import Origin
from ..suggestions import did_you_mean

_MARK = "sideband_from_host"
_VALUES: Mapping[str, tuple[Any, Callable[[Origin], str | None]]] = {
    # All questions are answered by a person. Modes that answer some of them otherwise do not exist yet.
    "approval_mode": (str, lambda _: "manual"),
    "channel": (str | None, lambda origin: origin.channel),
    "principal": (str, lambda origin: origin.principal),
    "session": (str | None, lambda origin: origin.session),
}


@frozen
class FromHost:
    """Marks a parameter of an op or a tool as a value of the host. Callers neither see nor set it.

    The parameter is not part of any schema. A value that a model, a skill, a guard or a user passes for it is ignored.

    Args:
        value: ``principal``, on whose behalf the call runs; ``session``, the id of the agent's session; ``channel``,
            the channel of the user, such as ``cli``; or ``approval_mode``, how questions of guards are answered, which
            is always ``manual``: by a person. Without an agent, ``session`` and ``channel`` are ``None``.

    Example:
        >>> class NoteParams(BaseModel):
        ...     text: str
        ...     author: Annotated[str, FromHost("principal")]
        ...     session: Annotated[str | None, FromHost("session")] = None
        >>> list(NoteParams.model_json_schema()["properties"])
        ['text']
    """

    value: str = field(validator=instance_of(str))
    # The values of all marks of the process. Without any mark, schemas need not be searched.
    made: ClassVar[set[str]] = set()

    def __attrs_post_init__(self) -> None:
        self.made.add(self.value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return {**schema, "metadata": {**schema.get("metadata", {}), _MARK: self.value}}

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        raise PydanticOmit


def host_parameters(declared: str, model: type[BaseModel]) -> Mapping[str, str]:
    """Return the parameters that the host fills in, each with the name of its value.

    Args:
        declared: the object that is declared, for error messages.
        model: the model of its parameters.

    Raises:
        TypeError: if one of them could not be filled in, so that a caller could set it.
    """
    found: dict[str, str] = {}
    if not FromHost.made:
        return found
    for name, one in model.model_fields.items():
        for mark in one.metadata:
            if not isinstance(mark, FromHost):
                continue
            check_host_values(declared, {name: mark.value})
            expected = _VALUES[mark.value][0]
            if one.annotation != expected:
                written = "str" if expected is str else "str | None"
                raise TypeError(f'{declared}: write `{name}: Annotated[{written}, FromHost("{mark.value}")]`')
            if one.alias is not None or one.validation_alias is not None:
                raise TypeError(f"{declared}: `{name}` is filled in by the host, so it must not have an alias")
            found[name] = mark.value
    if _count_marks(model.__pydantic_core_schema__) != len(found):
        raise TypeError(f"{declared}: `FromHost` must mark a whole parameter of {model.__name__}, not a part of one")
    return found


def check_host_values(declared: str, parameters: Mapping[str, str]) -> None:
    """Raise a ``TypeError`` if the host does not have one of these values."""
    for name, value in parameters.items():
        if value not in _VALUES:
            raise TypeError(f"{declared}: `{name}`: unknown host value {value!r}{did_you_mean(value, _VALUES)}")


def with_host_values(parameters: Mapping[str, str], arguments: Mapping[str, Any], origin: Origin) -> Mapping[str, Any]:
    """Return the arguments with the values of the host, in place of those that the caller passed for them.

    Args:
        parameters: the parameters that the host fills in, each with the name of its value.
        arguments: the arguments of the caller.
        origin: the caller, as the host knows it.
    """
    if not parameters:
        return arguments
    return {**arguments, **{name: _VALUES[value][1](origin) for name, value in parameters.items()}}


def _count_marks(schema: object) -> int:
    if isinstance(schema, Mapping):
        return (_MARK in schema) + sum(map(_count_marks, schema.values()))
    return sum(map(_count_marks, schema)) if isinstance(schema, list | tuple) else 0
