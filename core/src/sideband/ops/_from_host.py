"""Parameters that the host fills in, whatever the caller sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from .._from_host import FromHost, count_marks
from ..contexts import Origin
from ..suggestions import did_you_mean

_VALUES: Mapping[str, tuple[Any, Callable[[Origin], str | None]]] = {
    "approval_mode": (str, lambda origin: origin.approval_mode or "manual"),
    "channel": (str | None, lambda origin: origin.channel),
    "principal": (str, lambda origin: origin.principal),
    "session": (str | None, lambda origin: origin.session),
}


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
        if isinstance(one.default, FromHost):
            raise TypeError(f"{declared}: the mark of `{name}` is its default; write `Annotated[…, {one.default!r}]`")
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
    if count_marks(model.__pydantic_core_schema__) != len(found):
        raise TypeError(f"{declared}: `FromHost` must mark a whole parameter of {model.__name__}, not a part of one")
    return found


def check_host_values(declared: str, parameters: Mapping[str, str]) -> None:
    """Raise a ``TypeError`` if the host does not have one of these values."""
    for name, value in parameters.items():
        if value not in FromHost.values:
            raise TypeError(f"{declared}: `{name}`: unknown host value {value!r}{did_you_mean(value, FromHost.values)}")


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


def passing(parameters: Mapping[str, str]) -> frozenset[str]:
    """Return the parameters whose values may differ when the same call runs again, such as in another channel.

    They say nothing about which effect is meant.
    """
    return frozenset(name for name, value in parameters.items() if value in ("approval_mode", "channel"))
