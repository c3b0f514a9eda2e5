"""Counts what is read, and ends it where it is too much. Both readers ask it before they make anything."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from ._config import Config
from ._errors import PlistTooLarge

__all__ = ["Budget"]

_PULSE = 1024


@define(eq=False)
class Budget:
    """What one property list may still take.

    Args:
        config: the limits.
        pulse: called now and then; raises if nobody waits for the result any more.
    """

    config: Config
    pulse: Callable[[], None]
    _values: int = field(default=0, init=False)
    _bytes: int = field(default=0, init=False)

    def value(self, depth: int) -> None:
        """Count one value, ``depth`` levels deep.

        Raises:
            PlistTooLarge: there are too many, or they are nested too deep.
        """
        self._values += 1
        if self._values > self.config.max_values:
            raise PlistTooLarge(f"it holds more than {self.config.max_values:,} values")
        if depth > self.config.max_depth:
            raise PlistTooLarge(f"it is nested deeper than {self.config.max_depth} levels")
        if self._values % _PULSE == 0:
            self.pulse()

    def size(self, length: int) -> None:
        """Count the bytes of a text or of data.

        Raises:
            PlistTooLarge: together they are too many.
        """
        self._bytes += length
        if self._bytes > self.config.max_bytes:
            raise PlistTooLarge(f"its texts and data have more than {self.config.max_bytes:,} bytes")
