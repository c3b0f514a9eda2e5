"""What an op is told about one of its effects later on: to find out what became of it, and to take it back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Factory, field, frozen

__all__ = ["Reconciled", "Recorded", "Undo", "UndoStep"]


@frozen(kw_only=True)
class Recorded:
    """One effect, as the ledger has it.

    Attributes:
        effect: its id.
        op: the op's name.
        params: the parameters that the op lets into the ledger, redacted; of others only the names.
        key: its idempotency key, if it had one.
        note: what the op noted before it changed anything (``OpContext.note``).
        status: how it ended: ``done``, ``failed``, ``cancelled`` or ``unknown``; ``None`` while nobody knows.
        result: what it answered, redacted; kept only of effects with a key.
        time: when it began, in UTC (ISO 8601).
    """

    effect: str
    op: str
    params: Mapping[str, Any] = Factory(dict)
    key: str | None = None
    note: Mapping[str, Any] = Factory(dict)
    status: str | None = None
    result: Any = None
    time: str = ""


@frozen
class Reconciled:
    """What the world says about an effect whose outcome was lost.

    Args:
        happened: whether it did.
        result: what the op would have answered, if that can still be told.
        repeatable: that nobody can tell, and that it does no harm to do it again with the same key, since the other
            side recognises it. The same request may then be made again; ``happened`` must be false.

    Raises:
        ValueError: it happened, and may be repeated: one of the two is not known.
    """

    happened: bool
    result: Any = None
    repeatable: bool = False

    def __attrs_post_init__(self) -> None:
        if self.happened and self.repeatable:
            raise ValueError("what has happened is not to be repeated")


@frozen
class UndoStep:
    """One effect that takes back another one, or a part of it.

    Args:
        op: the op to dispatch.
        params: its parameters.
        text: what it does, as a sentence for the person who decides: "put back `notes.txt` (3 KB) as it was".
    """

    op: str
    params: Mapping[str, Any] = field(repr=False)
    text: str


@frozen
class Undo:
    """How an effect can be taken back: by other effects, each gated and recorded like any. Nothing has been done yet.

    Args:
        steps: in the order in which they are to be done.
        remains: what can't be taken back, one sentence each, with the reason.

    Example:
        >>> async def undo(recorded: Recorded, ctx: OpContext) -> Undo:
        ...     if "before" not in recorded.note:
        ...         return Undo(remains=("what was there before was not kept: it was too large",))
        ...     step = UndoStep("files.restore", {"path": recorded.params["path"]}, "put the file back as it was")
        ...     return Undo(steps=(step,))
    """

    steps: tuple[UndoStep, ...] = ()
    remains: tuple[str, ...] = ()
