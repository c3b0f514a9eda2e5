"""The limits of the levels, and what shares one."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Literal

from attrs import frozen
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from sideband.ops import Level

_FORM = re.compile(r"(?P<count>[1-9][0-9]{0,5})/(?P<times>[1-9][0-9]{0,2})?(?P<unit>s|min|h|d)")
_UNITS = {"s": ("second", 1), "min": ("minute", 60), "h": ("hour", 3_600), "d": ("day", 86_400)}
_UNLIMITED = "unlimited"


@frozen
class Limit:
    """A number of effects within a window of time.

    Attributes:
        count: the number.
        seconds: the length of the window.
        window: the window in words, such as ``hour`` or ``10 minutes``.
    """

    count: int
    seconds: int
    window: str

    @classmethod
    @cache
    def parse(cls, text: str) -> Limit | None:
        """Return the limit that a text such as ``30/h`` describes, or ``None`` for ``unlimited``.

        Raises:
            ValueError: if it has another form.

        Example:
            >>> Limit.parse("5/10min")
            Limit(count=5, seconds=600, window='10 minutes')
        """
        if text == _UNLIMITED:
            return None
        if (found := _FORM.fullmatch(text)) is None:
            raise ValueError(
                "expected `COUNT/WINDOW` such as `30/h` or `5/10min` (units: s, min, h, d; at most 999,999 effects and "
                f"999 units), or `{_UNLIMITED}`"
            )
        name, seconds = _UNITS[found["unit"]]
        times = int(found["times"] or 1)
        return cls(int(found["count"]), times * seconds, name if times == 1 else f"{times} {name}s")


def _checked(value: object) -> object:
    Limit.parse(str(value))  # a number has the wrong form too
    return value


_LimitText = Annotated[str, BeforeValidator(_checked)]


class Config(BaseModel):
    """The table ``[plugins.guard-limits]``. A limit is a number per window, such as ``30/h``, or ``unlimited``.

    Example:
        >>> Config(restricted="5/10min").limit_of(Level.RESTRICTED).count
        5
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    controlled: _LimitText = Field(default="100/h", description="the limit of effects of the level CONTROLLED")
    restricted: _LimitText = Field(default="30/h", description="the limit of effects of the level RESTRICTED")
    privileged: _LimitText = Field(default="20/h", description="the limit of effects of the level PRIVILEGED")
    per: Literal["skill", "principal", "store"] = Field(
        default="skill",
        description="what has limits of its own: each skill (and each plugin) of each principal, each principal, or "
        "the whole store",
    )

    def limit_of(self, level: Level) -> Limit | None:
        """Return the limit of a level from CONTROLLED on; ``None`` if it is unlimited."""
        by_level = {Level.CONTROLLED: self.controlled, Level.RESTRICTED: self.restricted}
        return Limit.parse(by_level.get(level, self.privileged))
