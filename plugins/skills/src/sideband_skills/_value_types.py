"""Types for the validation of values. Accepted values are converted to JSON data and bytes, the worker's input."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, Required, Union
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from ._shape import Form

_MAXIMUM_DEPTH = 64


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > _MAXIMUM_DEPTH:
        raise ValueError(f"nested deeper than {_MAXIMUM_DEPTH} levels")
    match value:
        case None | bool() | int() | str() | bytes():
            return value
        case float() if value - value == 0:
            return value
        case list() | tuple():
            return [_plain(item, depth + 1) for item in value]
        case Mapping() if all(isinstance(key, str) for key in value):
            return {key: _plain(item, depth + 1) for key, item in value.items()}
        case _:
            raise ValueError("expected JSON data")


def _parsed(opening: str) -> BeforeValidator:
    """Return a validator that parses JSON text, the form of lists and objects on a command line."""

    def parse(value: Any) -> Any:
        if not isinstance(value, str) or not value.lstrip().startswith(opening):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("expected valid JSON") from None

    return BeforeValidator(parse)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    text = value.get("__bytes__") if isinstance(value, Mapping) and len(value) == 1 else value
    if not isinstance(text, str):
        raise ValueError("expected bytes in base64")  # noqa: TRY004 - pydantic reports only ValueError
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("expected bytes in base64") from None


def _unique(values: list[Any]) -> list[Any]:
    return [value for index, value in enumerate(values) if value not in values[:index]]


def _isoformat(value: date | time) -> str:
    return value.isoformat()


def _nothing(value: Any) -> None:
    if value is not None and value != "null":
        raise ValueError("expected null")


_ANYTHING = Annotated[Any, AfterValidator(_plain)]
_NAMED: Mapping[str, Any] = {
    "anything": _ANYTHING,
    "array": Annotated[list[_ANYTHING], _parsed("[")],
    "boolean": bool,
    "bytes": Annotated[bytes, BeforeValidator(_bytes)],
    "date": Annotated[date, AfterValidator(_isoformat)],
    "datetime": Annotated[datetime, AfterValidator(_isoformat)],
    "decimal": Annotated[Decimal, AfterValidator(str)],
    "integer": int,
    "nothing": Annotated[None, BeforeValidator(_nothing)],
    "number": Annotated[float, Field(allow_inf_nan=False)],
    "object": Annotated[dict[str, _ANYTHING], _parsed("{")],
    "text": str,
    "time": Annotated[time, AfterValidator(_isoformat)],
    "uuid": Annotated[UUID, AfterValidator(str)],
}


def type_of(form: Form) -> Any:
    """Return the type with this form, for pydantic."""
    if isinstance(form, str):
        return _NAMED[form]
    kind, *parts = form
    return _COMPOSED[kind](*parts)


def is_form(value: Any) -> bool:
    """Return whether a value is a form, so that ``type_of`` can build its type."""
    match value:
        case str():
            return value in _NAMED
        case ["union" | "fixed" as kind, [*forms]]:
            return (bool(forms) or kind == "fixed") and all(map(is_form, forms))
        case ["choice", [_, *_] as values]:
            return all(one is None or isinstance(one, str | int) for one in values)
        case ["array" | "distinct" | "mapping", form]:
            return is_form(form)
        case ["structure", str(), dict(members)]:
            return all(_is_member(member) for member in members.values())
        case _:
            return False


def _is_member(value: Any) -> bool:
    match value:
        case [form, bool()]:
            return is_form(form)
        case _:
            return False


def _union(options: list[Form]) -> Any:
    """Return the type of a value of one of several types; a type that needs no conversion is preferred."""
    return Union[tuple(map(type_of, options))]  # noqa: UP007 - the options are known only at run time


def _choice(values: list[Any]) -> Any:
    """Return the type of one of these values, which may be given as text."""
    as_text = {json.dumps(value): value for value in values if not isinstance(value, str)}

    def convert(value: Any) -> Any:
        return as_text.get(value, value) if isinstance(value, str) and value not in values else value

    return Annotated[Literal[tuple(values)], BeforeValidator(convert)]


def _array(item: Form) -> Any:
    """Return the type of a list."""
    return Annotated[list[type_of(item)], _parsed("[")]  # type: ignore[misc]


def _distinct(item: Form) -> Any:
    """Return the type of a list without duplicates."""
    return Annotated[list[type_of(item)], _parsed("["), AfterValidator(_unique)]  # type: ignore[misc]


def _fixed(items: list[Form]) -> Any:
    """Return the type of a list with exactly these types."""
    types = tuple(map(type_of, items))
    return Annotated[tuple[types] if types else tuple[()], _parsed("["), AfterValidator(list)]  # type: ignore[valid-type]


def _mapping(value: Form) -> Any:
    """Return the type of an object with any keys."""
    return Annotated[dict[str, type_of(value)], _parsed("{")]  # type: ignore[misc]


def _structure(name: str, members: Mapping[str, tuple[Form, bool]]) -> Any:
    """Return the type of an object with these keys. Missing optional keys are not added."""
    fields = {key: (Required if required else NotRequired)[type_of(form)] for key, (form, required) in members.items()}
    typed = TypedDict(name, fields)  # type: ignore[misc]
    return Annotated[with_config(ConfigDict(extra="forbid"))(typed), _parsed("{")]


_COMPOSED: Mapping[str, Callable[..., Any]] = {
    "array": _array,
    "choice": _choice,
    "distinct": _distinct,
    "fixed": _fixed,
    "mapping": _mapping,
    "structure": _structure,
    "union": _union,
}
