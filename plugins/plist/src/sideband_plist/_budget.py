"""Counts the resources that a property list needs, and stops its processing at the limits."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from ._config import Config
from ._errors import PlistTooLarge

_PULSE = 1024

Pulse = Callable[[], None]


@define(eq=False)
class PlistBudget:
    """The resources used by one property list.

    Args:
        config: the limits.
        pulse: called regularly; raises an exception to stop processing when the call is cancelled.
    """

    config: Config
    pulse: Pulse
    _values: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def values(self, count: int) -> None:
        """Count values.

        Raises:
            PlistTooLarge: if there are too many.
        """
        before, self._values = self._values, self._values + count
        if self._values > self.config.max_values:
            raise PlistTooLarge(f"more than {self.config.max_values:,} values")
        if before // _PULSE < self._values // _PULSE:
            self.pulse()

    def depth(self, levels: int) -> None:
        """Check the nesting depth.

        Raises:
            PlistTooLarge: if it is too deep.
        """
        if levels > self.config.max_depth:
            raise PlistTooLarge(f"nested deeper than {self.config.max_depth} levels")

    def size(self, length: int) -> None:
        """Count the bytes of texts and data.

        Raises:
            PlistTooLarge: if their total is too large.
        """
        self._bytes += length
        if self._bytes > self.config.max_bytes:
            raise PlistTooLarge(f"its texts and data exceed {self.config.max_bytes:,} bytes")
