"""The records of an effect: the intent before it, the outcome after it, and both combined when read back."""

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
    """The record of an effect before it happens. It is written before the op runs.

    Args:
        effect: the id of the effect, from ``Ledger.new_effect_id``.
        op: the name of the op.
        params: the recordable parameters, redacted.
        grant: the capabilities that the host held for the call, as strings.
        origin: the origin of the effect.
        level: the level of the op.
        key: the idempotency key, if any.
        decisions: the decisions of the guards and of the grant check, in order, as plain data.
        isolation: the isolation tier of the worker that dispatched the op, or ``None`` without a worker.
        granted_by: the source of each capability in ``grant``, in the same order: ``call`` (the caller), ``policy``
            (the configuration), ``remembered`` (an earlier answer of the user), ``person`` (an answer just now), or an
            empty string if a plugin narrowed it.
        within: the id of the enclosing effect, if another op dispatched this one.
        note: the notes that the op made while it ran. Set only when read back, because notes have their own lines.
        time: the time of writing. Set only when read back.
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
    """The outcome of a dispatch. Exactly one is written per dispatch, before the caller receives the answer.

    ``params``, ``grant``, ``origin``, ``level`` and ``isolation`` are written only if there is no intent: a denied
    dispatch has an outcome without an intent.

    Args:
        effect: the id of the effect, as in the intent.
        op: the name of the op.
        status: how the dispatch ended.
        error: the error as data, redacted.
        ms: the duration in milliseconds.
        bytes: the size of the answer in bytes.
        decisions: all decisions, if any were added after the intent. Otherwise those of the intent apply.
        result: the redacted result, for later dispatches with the same key. Written only if there is a ``key``.
        note: the notes that the op made while it ran, repeated so that intent and outcome are complete.
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
        seq: the number of the line, starting at 1.
        time: the time of writing, in UTC (ISO 8601).
        kind: ``open``, ``close``, ``intent``, ``note``, ``outcome``, ``rotate``, ``recovery`` or ``mismatch``.
        fields: all fields of the line.
    """

    seq: int
    time: str
    kind: str
    fields: Mapping[str, Any]

    @classmethod
    def from_line(cls, line: LedgerLine) -> LedgerEntry:
        """Return the entry for a parsed line."""
        return cls(line.seq, str(line.fields.get("time", "")), line.kind, line.fields)


@frozen(kw_only=True)
class EffectRecord(Intent):
    """The complete record of one effect: its intent, notes and outcome.

    Attributes:
        status: the outcome, or ``None`` if no outcome is recorded.
        time: the time at which the effect began or was denied.
        secrets: ``closed`` if the values of some secrets were unknown when a line was written, so that it may contain
            them.
        entries: the lines of the effect.
    """

    effect: str = ""
    op: str = ""
    status: Status | None = None
    error: Mapping[str, Any] | None = None
    ms: float | None = None
    bytes: int | None = None
    result: Any = None
    secrets: str | None = None
    entries: tuple[LedgerEntry, ...] = field(default=(), repr=False)

    @classmethod
    def from_entries(cls, entries: tuple[LedgerEntry, ...]) -> EffectRecord:
        """Merge the lines of one effect, given in the order in which they were written."""
        merged: dict[str, Any] = {}
        for entry in entries:
            merged.update(entry.fields)
        return cls(**{**read_fields(cls, merged), "time": entries[0].time, "entries": entries})


_REQUEST = ("params", "grant", "origin")
_INTENT = ("effect", "op", *_REQUEST, "key", "level", "decisions", "isolation", "granted_by", "within")
_OUTCOME = ("effect", "op", "status", "key", "decisions", "error", "ms", "bytes", "result", "note")
_IDENTITY = (*_REQUEST, "level", "isolation", "within")


def intent_fields(intent: Intent) -> dict[str, Any]:
    """Return the fields of the line for ``intent``."""
    return line_fields("intent", intent, _INTENT)


def note_fields(effect: str, op: str, note: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the line for a note that an op makes before it changes anything."""
    return {"kind": "note", "effect": effect, "op": op, "note": note}


def outcome_fields(outcome: Outcome, *, follows: bool) -> dict[str, Any]:
    """Return the fields of the line for ``outcome``.

    Args:
        outcome: the outcome to write.
        follows: whether an intent was written, which has the origin, the parameters and the grant.
    """
    fields = line_fields("outcome", outcome, _OUTCOME if follows else _OUTCOME + _IDENTITY)
    if outcome.key is None:
        fields.pop("result", None)
    return fields
