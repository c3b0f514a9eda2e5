"""Counts what a property list takes, and ends its reading or writing where that is too much."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from ._config import Config
from ._errors import PlistTooLarge

_PULSE = 1024

Pulse = Callable[[], None]


@define(eq=False)
class PlistBudget:
    """What one property list may still take.

    Args:
        config: the limits.
        pulse: called now and then; raises if the result is not waited for any more.
    """

    config: Config
    pulse: Pulse
    _values: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def values(self, count: int) -> None:
        """Count values.

        Raises:
            PlistTooLarge: there are too many.
        """
        before, self._values = self._values, self._values + count
        if self._values > self.config.max_values:
            raise PlistTooLarge(f"it holds more than {self.config.max_values:,} values")
        if before // _PULSE < self._values // _PULSE:
            self.pulse()

    def depth(self, levels: int) -> None:
        """Check how deep something is nested.

        Raises:
            PlistTooLarge: it is too deep.
        """
        if levels > self.config.max_depth:
            raise PlistTooLarge(f"it is nested deeper than {self.config.max_depth} levels")

    def size(self, length: int) -> None:
        """Count the bytes of a text or of data.

        Raises:
            PlistTooLarge: together they are too many.
        """
        self._bytes += length
        if self._bytes > self.config.max_bytes:
            raise PlistTooLarge(f"its texts and data have more than {self.config.max_bytes:,} bytes")
