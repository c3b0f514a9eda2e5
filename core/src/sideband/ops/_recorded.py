"""The data that ops exchange with the host to reconcile and undo recorded effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Factory, field, frozen

__all__ = ["Reconciled", "Recorded", "Undo", "UndoStep"]


@frozen(kw_only=True)
class Recorded:
    """An effect as recorded in the ledger.

    Attributes:
        effect: the id of the effect.
        op: the name of the op.
        params: the recordable parameters, redacted; for other parameters only the names.
        key: the idempotency key, if any.
        note: the data that the op noted before making a change (``OpContext.note``).
        status: ``done``, ``failed``, ``cancelled`` or ``unknown``; ``None`` if no outcome was recorded.
        result: the result, redacted; stored only for effects with a key.
        time: the start time in UTC (ISO 8601).
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
    """The finding of ``reconcile`` about an effect whose outcome was lost.

    Args:
        happened: whether the effect happened.
        result: the result that the op would have returned, if it can still be determined.
        repeatable: whether the request may be sent again with the same key although it is unknown whether the effect
            happened, because the server recognizes the key. Requires ``happened=False``.

    Raises:
        ValueError: if both ``happened`` and ``repeatable`` are true.
    """

    happened: bool
    result: Any = None
    repeatable: bool = False

    def __attrs_post_init__(self) -> None:
        if self.happened and self.repeatable:
            raise ValueError("`happened` and `repeatable` are mutually exclusive")


@frozen
class UndoStep:
    """One effect that reverts another one, completely or in part.

    Args:
        op: the op to dispatch.
        params: its parameters.
        text: a description for the user who decides, such as "restore `notes.txt` (3 KB)".
    """

    op: str
    params: Mapping[str, Any] = field(repr=False)
    text: str


@frozen
class Undo:
    """A plan to revert an effect by other effects, each of which needs a grant and is recorded.

    Args:
        steps: the effects, in the order in which to run them.
        remains: the parts that cannot be reverted: one sentence each, with the reason.

    Example:
        >>> async def undo(recorded: Recorded, ctx: OpContext) -> Undo:
        ...     if "before" not in recorded.note:
        ...         return Undo(remains=("the previous content was too large to keep",))
        ...     step = UndoStep("files.restore", {"path": recorded.params["path"]}, "restore the previous content")
        ...     return Undo(steps=(step,))
    """

    steps: tuple[UndoStep, ...] = ()
    remains: tuple[str, ...] = ()
