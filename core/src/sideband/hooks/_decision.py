"""What came out of a hook that decides."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from attrs import field, frozen

from ._errors import HookError

__all__ = ["Decision", "Note", "Said", "Verdict"]


class Verdict(StrEnum):
    """Whether it may happen."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@frozen
class Note:
    """A sentence, and the plugin that wrote it."""

    plugin: str
    text: str


@frozen
class Said:
    """What one plugin answered.

    Attributes:
        plugin: who.
        answer: ``allow``, ``replace``, ``ask`` or ``deny``.
        text: its note, question or reason.
    """

    plugin: str
    answer: Literal["allow", "replace", "ask", "deny"]
    text: str = ""


@frozen
class Decision:
    """The answer of all implementations together.

    Attributes:
        verdict: whether it may happen. ``ASK`` is no permission: a person has to give it.
        arguments: the final arguments, which every implementation has seen; ``None`` if the event has none.
        reason: why not; empty unless denied.
        plugin: who denied it, or asked first; ``None`` if it is allowed.
        halt: whether the whole run must end.
        notes: what those who allowed it noted, in order.
        questions: what a person must be asked, in order; empty unless the verdict is ``ASK``.
        replaced_by: the plugins that changed the arguments, in order.
        error: the failure, if it was denied because an implementation failed.
        said: all that plugins answered, in the order in which they did. Left out are those who had nothing to say,
            and what was said of arguments that were replaced since by somebody who was asked again. How a decision
            came about is no part of it: two that differ only in this are equal.

    Example:
        >>> Decision(Verdict.ASK, questions=(Note("guard-risk", "May I send this mail?"),)).question
        'May I send this mail?'
    """

    verdict: Verdict = Verdict.ALLOW
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    plugin: str | None = None
    halt: bool = False
    notes: tuple[Note, ...] = ()
    questions: tuple[Note, ...] = ()
    replaced_by: tuple[str, ...] = ()
    error: HookError | None = None
    said: tuple[Said, ...] = field(default=(), eq=False)

    @property
    def allowed(self) -> bool:
        """Whether it may happen without asking anybody."""
        return self.verdict is Verdict.ALLOW

    @property
    def question(self) -> str:
        """All questions as one text; empty if there are none."""
        return " ".join(note.text for note in self.questions)
