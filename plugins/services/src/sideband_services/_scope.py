"""The scope of a ``services`` capability."""

from __future__ import annotations

from typing import ClassVar

import attrs
from sideband.ops import Scope


@attrs.frozen
class ServicesScope(Scope, family="services"):
    """The fields of a ``services`` capability.

    Args:
        name: the name of the service.
        provider: the name of the skill that provides it, known when it has been chosen.
    """

    known_later: ClassVar[tuple[str, ...]] = ("provider",)

    name: str | None = None
    provider: str | None = None
