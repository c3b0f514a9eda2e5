"""Collection of problems, so that reading can continue after one."""

from __future__ import annotations

from reprlib import Repr

from attrs import Factory, define, field
from sideband.loading import SkillProblem

from ._meter import Meter

_MAXIMUM_PROBLEMS = 200
_MAXIMUM_TEXT = 1_000


@define
class Problems:
    """The problems of one skill, in the order of their detection. Beyond 200, further ones are only counted.

    Args:
        source: the skill's folder; problems with a file name it after this.
        meter: what loading uses. It is checked with each problem, since a skill determines how many it has.
    """

    source: str
    meter: Meter = Factory(Meter)
    found: list[SkillProblem] = Factory(list)
    is_fatal: bool = field(default=False, init=False)
    _known: set[SkillProblem] = field(factory=set, init=False)
    _more: int = field(default=0, init=False)

    def warn(self, code: str, reason: str, hint: str = "", *, file: str = "") -> None:
        """Add a problem that does not prevent loading."""
        self._add(code, reason, hint, file, fatal=False)

    def fail(self, code: str, reason: str, hint: str = "", *, file: str = "") -> None:
        """Add a problem that prevents the skill or one of its tools from loading."""
        self._add(code, reason, hint, file, fatal=True)

    def _add(self, code: str, reason: str, hint: str, file: str, *, fatal: bool) -> None:
        source = f"{self.source}/{file}" if file else self.source
        problem = SkillProblem(source, f"skill.{code}", _cut(reason), _cut(hint), fatal)
        self.is_fatal |= fatal
        self.meter.check()
        if problem in self._known:
            return
        if len(self.found) < _MAXIMUM_PROBLEMS:
            self.meter.add_text(len(problem.source) + len(problem.reason) + len(problem.hint))
            self._known.add(problem)
            self.found.append(problem)
            return
        self._more += 1
        more = SkillProblem(self.source, "skill.problems", f"{self._more:,} more problems are not shown")
        self.found[_MAXIMUM_PROBLEMS:] = [more]


def _cut(text: str) -> str:
    return text if len(text) <= _MAXIMUM_TEXT else f"{text[: _MAXIMUM_TEXT - 1]}…"


def shown(value: object, length: int = 80) -> str:
    """Format a value for a message: on one line and of bounded length, even if it is large or deeply nested."""
    short = Repr()
    short.maxstring = short.maxother = short.maxlong = length
    try:
        text = short.repr(value)
    except ValueError:
        # raised for integers with thousands of digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= length else f"{text[: length - 1]}…"
