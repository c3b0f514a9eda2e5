"""Why an effect was not taken back, where the ops themselves have nothing to say.

SidebandError
├── UndoImpossible(RuntimeError)     undo.impossible   there is no step that would take anything of it back
└── UndoDeclined(PermissionError)    undo.declined     nobody agreed to it
"""

from __future__ import annotations

from collections.abc import Iterable

from sideband import SidebandError
from sideband.exit_codes import ExitCode

__all__ = ["UndoDeclined", "UndoImpossible"]


class UndoImpossible(SidebandError, RuntimeError):
    """Nothing of the effect can be taken back; the message says why. Nothing was changed."""

    code = "undo.impossible"

    def __init__(self, effect: str, remains: Iterable[str]) -> None:
        why = "; ".join(remains) or "its op plans no step for it"
        super().__init__(
            f"nothing of {effect} can be taken back: {why}",
            hint=f"`sideband audit why {effect}` shows what it did; put it right by hand, or with other effects",
        )


class UndoDeclined(SidebandError, PermissionError):
    """The person said no, or there was nobody to ask. Nothing was changed."""

    code = "undo.declined"
    exit_code = ExitCode.DENIED

    def __init__(self, effect: str, *, asked: bool) -> None:
        why = "that was not agreed to" if asked else "nobody can be asked"
        hint = "" if asked else "look at the plan with --dry-run, then agree to it with --yes"
        super().__init__(f"{effect} was not taken back: {why}", hint=hint or "nothing was changed")
