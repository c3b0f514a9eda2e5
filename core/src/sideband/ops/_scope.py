"""Scopes: string fields that a family declares, an op derives from its parameters, and capabilities restrict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

__all__ = ["Scope"]


@attrs.frozen
class Scope:
    """Base class of a family's scope. Fields are strings; ``None`` means that the request may use any value.

    Example:
        >>> @attrs.frozen
        ... class ClockScope(Scope, family="clock"):
        ...     zone: str | None = None
        >>> ClockScope(zone="Europe/Vienna").fields()
        {'zone': 'Europe/Vienna'}
        >>> ClockScope.field_names()
        ('zone',)
    """

    family: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The values of fields that a capability omits, for fields where omission does not mean "any value"."""
    valid_values: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The valid values of fields that have only a few. A capability with another value is invalid, because it could
    never allow anything."""
    amounts: ClassVar[tuple[str, ...]] = ()
    """Fields whose values are amounts, such as ``0.50``: a capability allows requests for no more than its amount."""
    known_later: ClassVar[tuple[str, ...]] = ()
    """Fields that an op may omit when its grant is checked, because they are known only while it runs, such as the
    address of a host name. Its handler must then call ``require`` with a scope that sets them."""

    def __init_subclass__(cls, *, family: str = "", **kwargs: object) -> None:
        # attrs creates a slotted class a second time, without the keyword
        super().__init_subclass__(**kwargs)
        if family:
            cls.family = family

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Return the names of the fields that a capability of this family may use."""
        return tuple(attribute.name for attribute in attrs.fields(cls))

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG003
        """Return the values of fields that a capability omits.

        Args:
            fields: the fields of the capability, percent-decoded; a trailing ``*`` matches any ending.

        Returns:
            The values of omitted fields for which omission does not mean "any value". Values of fields that the
            capability sets are ignored.
        """
        return cls.defaults

    @classmethod
    def explain(cls, fields: Mapping[str, tuple[str, ...]]) -> str:  # noqa: ARG003
        """Return a remark on a capability with these fields, which the question about it shows; empty without one.

        Args:
            fields: the fields of the capability, percent-decoded; a trailing ``*`` matches any ending.
        """
        return ""

    def fields(self) -> Mapping[str, str]:
        """Return the fields that are set."""
        values = {name: getattr(self, name) for name in self.field_names()}
        return {name: value for name, value in values.items() if value is not None}
