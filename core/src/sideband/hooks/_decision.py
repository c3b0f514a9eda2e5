"""The outcome of a hook of the kind `decide`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from attrs import field, frozen

from ..contexts import ApprovalMode
from ._errors import HookError
from ._results import Ask

__all__ = ["Decision", "Note", "Said", "Verdict"]


class Verdict(StrEnum):
    """The outcome of a decision."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@frozen
class Note:
    """A sentence, and the plugin that wrote it.

    Attributes:
        plugin: the entry-point name of the plugin.
        text: the sentence.
    """

    plugin: str
    text: str


@frozen
class Said:
    """The answer of one plugin.

    Attributes:
        plugin: the entry-point name of the plugin.
        answer: ``allow``, ``replace``, ``ask`` or ``deny``.
        text: its note, question or reason.
        ask: the answer itself, if it asks.
    """

    plugin: str
    answer: Literal["allow", "replace", "ask", "deny"]
    text: str = ""
    ask: Ask | None = field(default=None, eq=False, repr=False)


@frozen
class Decision:
    """The combined answer of all implementations.

    Attributes:
        verdict: the verdict. ``ASK`` is not a permission: the user has to approve first.
        arguments: the final arguments, which every implementation has seen; ``None`` if the event has no arguments.
        reason: the reason of a denial; otherwise empty.
        hint: what to do after a denial; may be empty.
        plugin: the plugin that denied or was the first to ask; ``None`` if the verdict is ``ALLOW``.
        halt: whether the whole run must end.
        notes: the notes of plugins that allowed it, in order.
        questions: the questions for the user, in order; empty unless the verdict is ``ASK``.
        replaced_by: the plugins that replaced the arguments, in order.
        error: the failure, if a failing implementation caused the denial.
        said: all answers, in chronological order. Answers of ``None``, and answers that a plugin gave to arguments
            that were replaced later, are omitted. Ignored by ``==``.

    Example:
        >>> Decision(Verdict.ASK, questions=(Note("guard-risk", "May I send this mail?"),)).question
        'May I send this mail?'
    """

    verdict: Verdict = Verdict.ALLOW
    arguments: Mapping[str, Any] | None = None
    reason: str = ""
    hint: str = ""
    plugin: str | None = None
    halt: bool = False
    notes: tuple[Note, ...] = ()
    questions: tuple[Note, ...] = ()
    replaced_by: tuple[str, ...] = ()
    error: HookError | None = None
    said: tuple[Said, ...] = field(default=(), eq=False)

    @property
    def allowed(self) -> bool:
        """Whether the verdict is ``ALLOW``: no approval is needed."""
        return self.verdict is Verdict.ALLOW

    @property
    def question(self) -> str:
        """All questions, joined into one text; may be empty."""
        return " ".join(note.text for note in self.questions)

    @property
    def lasting(self) -> bool:
        """Whether the answer of the user may hold longer than once."""
        return all(one.lasting for one in self._asks())

    @property
    def preview(self) -> str:
        """What guards show below the arguments of a tool call; may be empty."""
        return "\n".join(filter(None, (one.preview for one in self._asks())))

    @property
    def mode(self) -> ApprovalMode | None:
        """The approval mode that the session gets if the user approves; ``None`` to keep its mode."""
        return next((one.mode for one in self._asks() if one.mode is not None), None)

    def _asks(self) -> list[Ask]:
        return [one.ask for one in self.said if one.ask is not None]
