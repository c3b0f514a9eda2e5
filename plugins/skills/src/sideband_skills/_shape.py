"""Types as data: the JSON schema for models, and the form from which a validator is built on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

Form = str | list[Any]
"""The name of a type, or a kind of composed type and its parts. It is JSON data, and ``type_of`` builds its type."""


@frozen
class Shape:
    """A type as a JSON schema, with the form of the type that validates values.

    Args:
        schema: the JSON schema, for models and users.
        form: the type for pydantic, which is built when the first value is validated.
        plain: the type that the function receives if JSON cannot carry the annotated one: ``a list``; else empty.
    """

    schema: Mapping[str, Any]
    form: Form = field(repr=False, eq=False)
    plain: str = ""


@frozen
class Member:
    """One field of a structure."""

    shape: Shape
    required: bool
