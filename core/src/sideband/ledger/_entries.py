"""What is recorded about an effect: before it (intent), after it (outcome), and both together as read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from ..ops import Level, Origin
from ._fields import line_fields, read_fields
from ._lines import LedgerLine

Status = Literal["done", "failed", "denied", "cancelled", "unknown"]


@frozen(kw_only=True)
class Intent:
    """What is about to happen. Recorded before the op runs.

    Args:
        effect: its id, from ``Ledger.new_effect_id``.
        op: the op's name.
        params: the parameters that may be recorded, redacted.
        grant: the capabilities that the host held for the call, as text.
        origin: who caused it.
        level: the op's level.
        key: the idempotency key, if it has one.
        decisions: what guards and the grant check decided, in order, as plain data.
        isolation: what isolates the worker that asked; ``None`` if no worker did.
        granted_by: who gave the capabilities in ``grant``, in the same order: ``call`` (whoever asked for the call),
            ``policy`` (the configuration), ``remembered`` (a person, earlier), ``person`` (just now); empty for one
            that a plugin narrowed.
        within: the effect that it is a part of, if an op asked for it.
        note: what the op noted while it ran. Only there when it is read back: it has lines of its own.
        time: when it was written; only there when it is read back.
    """

    effect: str
    op: str
    params: Mapping[str, Any] = field(factory=dict)
    grant: tuple[str, ...] = ()
    origin: Origin = field(factory=Origin)
    key: str | None = None
    level: Level | None = None
    decisions: tuple[Mapping[str, Any], ...] = ()
    isolation: str | None = None
    granted_by: tuple[str, ...] = ()
    within: str | None = None
    note: Mapping[str, Any] = field(factory=dict)
    time: str = ""


@frozen(kw_only=True)
class Outcome:
    """How a dispatch ended. Recorded before it is answered; exactly one for each.

    ``params``, ``grant``, ``origin``, ``level`` and ``isolation`` are written where no intent has said them: a refusal
    is an outcome without intent.

    Args:
        effect: the id that its intent has.
        op: the op's name.
        status: how it ended.
        error: the error as data, redacted.
        ms: how long it took, in milliseconds.
        bytes: how large the answer was.
        decisions: all decisions, if there were any after the intent; else those of the intent stand.
        result: the redacted result, for the next dispatch with the same key. Only written when there is a ``key``.
        note: what the op noted while it ran, once more, so that two lines tell everything.
    """

    effect: str
    op: str
    status: Status
    key: str | None = None
    error: Mapping[str, Any] | None = None
    ms: float | None = None
    bytes: int | None = None
    decisions: tuple[Mapping[str, Any], ...] = ()
    result: Any = None
    note: Mapping[str, Any] = field(factory=dict)
    params: Mapping[str, Any] | None = None
    grant: tuple[str, ...] | None = None
    origin: Origin | None = None
    level: Level | None = None
    isolation: str | None = None
    within: str | None = None


@frozen
class LedgerEntry:
    """One line of the ledger.

    Attributes:
        seq: its number, from 1.
        time: when it was written, in UTC (ISO 8601).
        kind: ``open``, ``close``, ``intent``, ``note``, ``outcome``, ``rotate``, ``recovery`` or ``mismatch``.
        fields: everything that the line says.
    """

    seq: int
    time: str
    kind: str
    fields: Mapping[str, Any]

    @classmethod
    def from_line(cls, line: LedgerLine) -> LedgerEntry:
        """The entry that a line holds."""
        return cls(line.seq, str(line.fields.get("time", "")), line.kind, line.fields)


@frozen(kw_only=True)
class EffectRecord(Intent):
    """Everything that the ledger says about one effect: its intent, and what became of it.

    Attributes:
        status: how it ended; ``None`` while nothing says so.
        time: when it began (for a refusal, when it was refused).
        entries: the lines that it was put together from.
    """

    effect: str = ""
    op: str = ""
    status: Status | None = None
    error: Mapping[str, Any] | None = None
    ms: float | None = None
    bytes: int | None = None
    result: Any = None
    entries: tuple[LedgerEntry, ...] = field(default=(), repr=False)

    @classmethod
    def from_entries(cls, entries: tuple[LedgerEntry, ...]) -> EffectRecord:
        """Put the lines of one effect together, in the order in which they were written."""
        said: dict[str, Any] = {}
        for entry in entries:
            said.update(entry.fields)
        return cls(**{**read_fields(cls, said), "time": entries[0].time, "entries": entries})


_SAID = ("params", "grant", "origin")
_INTENT = ("effect", "op", *_SAID, "key", "level", "decisions", "isolation", "granted_by", "within")
_OUTCOME = ("effect", "op", "status", "key", "decisions", "error", "ms", "bytes", "result", "note")
_IDENTITY = (*_SAID, "level", "isolation", "within")


def intent_fields(intent: Intent) -> dict[str, Any]:
    """The fields of the line for ``intent``."""
    return line_fields("intent", intent, _INTENT)


def note_fields(effect: str, op: str, note: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the line for what an op notes of an effect before it changes anything."""
    return {"kind": "note", "effect": effect, "op": op, "note": note}


def outcome_fields(outcome: Outcome, *, follows: bool) -> dict[str, Any]:
    """The fields of the line for ``outcome``.

    Args:
        outcome: what is to be said.
        follows: whether its intent was written, which has said who, what, and with which right.
    """
    fields = line_fields("outcome", outcome, _OUTCOME if follows else _OUTCOME + _IDENTITY)
    if outcome.key is None:
        fields.pop("result", None)
    return fields
