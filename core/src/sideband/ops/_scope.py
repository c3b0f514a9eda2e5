"""What a capability is compared with: string fields that a family declares and an op fills in from its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

__all__ = ["Scope"]


@attrs.frozen
class Scope:
    """The base of a family's scope. Fields are strings; ``None`` means that the request is not limited to one value.

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
    """What a field means in a capability that leaves it out, where that is not "any value"."""
    known_later: ClassVar[tuple[str, ...]] = ()
    """Fields that an op may leave open at the gate, because they are known only while it runs (what a name resolves
    to). Its handler must then ``require`` a scope in which they are filled in."""

    def __init_subclass__(cls, *, family: str = "", **kwargs: object) -> None:
        # attrs rebuilds a slotted class, and creates that second class without the keyword
        super().__init_subclass__(**kwargs)
        if family:
            cls.family = family

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of the fields that a capability of this family may use."""
        return tuple(attribute.name for attribute in attrs.fields(cls))

    @classmethod
    def complete(cls, fields: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG003
        """What a capability with these fields means by those that it leaves out.

        Args:
            fields: as written in the capability, percent-decoded; a trailing ``*`` stands for any ending.

        Returns:
            The values of absent fields that do not mean "any value"; those of present ones are not looked at.
        """
        return cls.defaults

    def fields(self) -> Mapping[str, str]:
        """The fields that are set."""
        values = {name: getattr(self, name) for name in self.field_names()}
        return {name: value for name, value in values.items() if value is not None}
