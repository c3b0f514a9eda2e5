"""Types as data: the JSON schema for models, and a validator that is built on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen


@frozen
class Shape:
    """A type as a JSON schema, with a factory of the type that validates values.

    Args:
        schema: the JSON schema, for models and users.
        build: creates the type for pydantic, called when the first value is validated.
        plain: the type that the function receives if JSON cannot carry the annotated one: ``a list``; else empty.
    """

    schema: Mapping[str, Any]
    build: Callable[[], Any] = field(repr=False, eq=False)
    plain: str = ""


@frozen
class Member:
    """One field of a structure."""

    shape: Shape
    required: bool
