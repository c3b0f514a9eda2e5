"""Types for the validation of values. Accepted values are converted to JSON data and bytes, the worker's input."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal, NotRequired, Required, Union
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from ._shape import Member, Shape

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


Text = str
Integer = int
Number = Annotated[float, Field(allow_inf_nan=False)]
Boolean = bool
Nothing = Annotated[None, BeforeValidator(_nothing)]
Anything = Annotated[Any, AfterValidator(_plain)]
Binary = Annotated[bytes, BeforeValidator(_bytes)]
Array = Annotated[list[Anything], _parsed("[")]
Object = Annotated[dict[str, Anything], _parsed("{")]
DateTime = Annotated[datetime, AfterValidator(_isoformat)]
Date = Annotated[date, AfterValidator(_isoformat)]
Time = Annotated[time, AfterValidator(_isoformat)]
DecimalText = Annotated[Decimal, AfterValidator(str)]
UuidText = Annotated[UUID, AfterValidator(str)]


def union_type(options: list[Shape]) -> Any:
    """Return the type of a value of one of several types; a type that needs no conversion is preferred."""
    return Union[tuple(option.build() for option in options)]  # noqa: UP007 - the options are known only at run time


def choice_type(values: list[Any]) -> Any:
    """Return the type of one of these values, which may be given as text."""
    as_text = {json.dumps(value): value for value in values if not isinstance(value, str)}

    def convert(value: Any) -> Any:
        return as_text.get(value, value) if isinstance(value, str) and value not in values else value

    return Annotated[Literal[tuple(values)], BeforeValidator(convert)]


def array_type(item: Shape) -> Any:
    """Return the type of a list."""
    return Annotated[list[item.build()], _parsed("[")]  # type: ignore[misc]


def distinct_type(item: Shape) -> Any:
    """Return the type of a list without duplicates."""
    return Annotated[list[item.build()], _parsed("["), AfterValidator(_unique)]  # type: ignore[misc]


def fixed_type(items: list[Shape]) -> Any:
    """Return the type of a list with exactly these types."""
    types = tuple(item.build() for item in items)
    return Annotated[tuple[types] if types else tuple[()], _parsed("["), AfterValidator(list)]  # type: ignore[valid-type]


def mapping_type(value: Shape) -> Any:
    """Return the type of an object with any keys."""
    return Annotated[dict[str, value.build()], _parsed("{")]  # type: ignore[misc]


def structure_type(name: str, members: Mapping[str, Member]) -> Any:
    """Return the type of an object with these keys. Missing optional keys are not added."""
    fields = {
        key: (Required if member.required else NotRequired)[member.shape.build()] for key, member in members.items()
    }
    typed = TypedDict(name, fields)  # type: ignore[misc]
    return Annotated[with_config(ConfigDict(extra="forbid"))(typed), _parsed("{")]
