"""Types as data: the JSON schema that models see, and the check that is built once a value arrives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen


@frozen
class Shape:
    """A type as a JSON schema, and how to make the type that checks values.

    Args:
        schema: for models and people.
        build: makes the type for pydantic, when the first value is checked.
        plain: what the function really gets, where that is not the annotated type: ``a list``. Values travel as JSON.
    """

    schema: Mapping[str, Any]
    build: Callable[[], Any] = field(repr=False, eq=False)
    plain: str = ""


@frozen
class Member:
    """One field of a structure."""

    shape: Shape
    required: bool
