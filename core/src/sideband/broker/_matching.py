"""Match an effect that is requested again with its record: by op, digest of the parameters, and ordinal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Generic, TypeVar

from attrs import define, field

_LENGTH = 16
_NAME = re.compile(rf"[^:/@]+:[0-9a-f]{{{_LENGTH}}}:[0-9]+")
_Record = TypeVar("_Record")


@define(eq=False)
class EffectMatcher(Generic[_Record]):
    """The recorded effects of an earlier time, and the names that requested effects have.

    An effect is named by what caused it, its op, the digest of its parameters, and its ordinal among those that are
    equal in all this. So effects that run at once may be requested in any order.

    Attributes:
        recorded: the records by name, oldest first.

    Example:
        >>> matcher = EffectMatcher({"1:http.get:aa:1": "the answer"})
        >>> matcher.name("http.get", "aa", within="1"), matcher.name("http.get", "aa", within="1")
        ('1:http.get:aa:1', '1:http.get:aa:2')
        >>> matcher.find("1:http.get:aa:1"), matcher.left
        ('the answer', {})
    """

    recorded: dict[str, _Record] = field(factory=dict)
    _requested: set[str] = field(factory=set, init=False)
    _ordinals: Counter[str] = field(factory=Counter, init=False)

    def name(self, op: str, digest: str, *, within: str) -> str:
        """Return the name of the next effect.

        Args:
            op: the op.
            digest: the digest of the parameters, of which the beginning is used.
            within: the name of what caused it.
        """
        equal = f"{within}:{op}:{digest[:_LENGTH]}"
        self._ordinals[equal] += 1
        return f"{equal}:{self._ordinals[equal]}"

    def find(self, name: str) -> _Record | None:
        """Return the record of the effect with this name, which now counts as requested."""
        self._requested.add(name)
        return self.recorded.get(name)

    @property
    def left(self) -> Mapping[str, _Record]:
        """The records of effects that were not requested again."""
        return {name: one for name, one in self.recorded.items() if name not in self._requested}


def is_name(text: str) -> bool:
    """Return whether this is the name of an effect, without what caused it."""
    return _NAME.fullmatch(text) is not None
