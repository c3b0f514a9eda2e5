"""Collection of problems, so that reading can continue after one."""

from __future__ import annotations

from reprlib import Repr

from attrs import Factory, define
from sideband.loading import SkillProblem


@define
class Problems:
    """The problems of one skill, in the order of their detection.

    Args:
        source: the skill's folder; problems with a file name it after this.
    """

    source: str
    found: list[SkillProblem] = Factory(list)

    def warn(self, code: str, reason: str, hint: str = "", *, file: str = "") -> None:
        """Add a problem that does not prevent loading."""
        self._add(code, reason, hint, file, fatal=False)

    def fail(self, code: str, reason: str, hint: str = "", *, file: str = "") -> None:
        """Add a problem that prevents the skill or one of its tools from loading."""
        self._add(code, reason, hint, file, fatal=True)

    def _add(self, code: str, reason: str, hint: str, file: str, *, fatal: bool) -> None:
        source = f"{self.source}/{file}" if file else self.source
        problem = SkillProblem(source=source, code=f"skill.{code}", reason=reason, hint=hint, fatal=fatal)
        if problem not in self.found:
            self.found.append(problem)


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
