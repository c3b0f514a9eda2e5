"""What is recorded about an effect: before it (intent), after it (outcome), and both together as read back."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Literal

from attrs import field, frozen

from ..ops import Level, Origin
from ._bytes import revive
from ._lines import Line

__all__ = ["STATUSES", "EffectRecord", "Entry", "Intent", "Outcome", "Status"]

Status = Literal["done", "failed", "denied", "cancelled", "unknown"]
STATUSES: tuple[Status, ...] = ("done", "failed", "denied", "cancelled", "unknown")
_ORIGIN = ("principal", "session", "run", "step", "skill", "tool", "plugin", "parent")
_origin_values = attrgetter(*_ORIGIN)


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
    level: Level | None = None
    key: str | None = None
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
class Entry:
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
    def from_line(cls, line: Line) -> Entry:
        """The entry that a line holds."""
        return cls(line.seq, str(line.fields.get("time", "")), line.kind, line.fields)


@frozen(kw_only=True)
class EffectRecord:
    """Everything that the ledger says about one effect.

    Attributes:
        status: how it ended; ``None`` while nothing says so.
        time: when it began (for a refusal, when it was refused).
        entries: the lines that it was put together from.
    """

    effect: str
    op: str
    time: str
    status: Status | None
    key: str | None
    params: Mapping[str, Any]
    grant: tuple[str, ...]
    granted_by: tuple[str, ...]
    within: str | None
    origin: Origin
    level: Level | None
    decisions: tuple[Mapping[str, Any], ...]
    isolation: str | None
    error: Mapping[str, Any] | None
    ms: float | None
    bytes: int | None
    result: Any
    note: Mapping[str, Any]
    entries: tuple[Entry, ...] = field(repr=False)

    @classmethod
    def from_entries(cls, entries: tuple[Entry, ...]) -> EffectRecord:
        """Put the lines of one effect together, in the order in which they were written."""
        said: dict[str, Any] = {}
        for entry in entries:
            said.update(entry.fields)
        intent = intent_of(said)
        return cls(
            effect=intent.effect,
            op=intent.op,
            time=entries[0].time,
            status=said.get("status"),
            key=intent.key,
            params=intent.params,
            grant=intent.grant,
            granted_by=intent.granted_by,
            within=intent.within,
            origin=intent.origin,
            level=intent.level,
            decisions=intent.decisions,
            isolation=intent.isolation,
            error=said.get("error"),
            ms=said.get("ms"),
            bytes=said.get("bytes"),
            result=revive(said.get("result")),
            note=intent.note,
            entries=entries,
        )


def intent_fields(intent: Intent) -> dict[str, Any]:
    """The fields of the line for ``intent``; what has no value is left out."""
    fields: dict[str, Any] = {
        "kind": "intent",
        "effect": intent.effect,
        "op": intent.op,
        "params": intent.params,
        "grant": intent.grant,
        "origin": _origin_fields(intent.origin),
    }
    if intent.key is not None:
        fields["key"] = intent.key
    if intent.level is not None:
        fields["level"] = intent.level.name
    if intent.decisions:
        fields["decisions"] = intent.decisions
    if intent.isolation is not None:
        fields["isolation"] = intent.isolation
    if intent.granted_by:
        fields["granted_by"] = intent.granted_by
    if intent.within is not None:
        fields["within"] = intent.within
    return fields


def note_fields(effect: str, op: str, note: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the line for what an op notes of an effect before it changes anything."""
    return {"kind": "note", "effect": effect, "op": op, "note": note}


def outcome_fields(outcome: Outcome, *, follows: bool) -> dict[str, Any]:
    """The fields of the line for ``outcome``; what has no value is left out.

    Args:
        outcome: what is to be said.
        follows: whether its intent was written, which has said who, what, and with which right.
    """
    fields: dict[str, Any] = {
        "kind": "outcome",
        "effect": outcome.effect,
        "op": outcome.op,
        "status": outcome.status,
    }
    if outcome.key is not None:
        fields["key"] = outcome.key
    if outcome.decisions:
        fields["decisions"] = outcome.decisions
    if outcome.error is not None:
        fields["error"] = outcome.error
    if outcome.ms is not None:
        fields["ms"] = round(outcome.ms, 3)
    if outcome.bytes is not None:
        fields["bytes"] = outcome.bytes
    if outcome.key is not None and outcome.result is not None:
        fields["result"] = outcome.result
    if outcome.note:
        fields["note"] = outcome.note
    if not follows:
        _add_identity(fields, outcome)
    return fields


def intent_of(fields: Mapping[str, Any]) -> Intent:
    """The intent that a line's fields describe."""
    origin = fields.get("origin", {})
    level = str(fields.get("level"))
    return Intent(
        effect=fields.get("effect", ""),
        op=fields.get("op", ""),
        params=revive(fields.get("params", {})),
        grant=tuple(fields.get("grant", ())),
        origin=Origin(**{name: origin[name] for name in _ORIGIN if name in origin}),
        level=Level.__members__.get(level),
        key=fields.get("key"),
        decisions=tuple(fields.get("decisions", ())),
        isolation=fields.get("isolation"),
        granted_by=tuple(fields.get("granted_by", ())),
        within=fields.get("within"),
        note=revive(fields.get("note", {})),
        time=str(fields.get("time", "")),
    )


def _add_identity(fields: dict[str, Any], outcome: Outcome) -> None:
    if outcome.params is not None:
        fields["params"] = outcome.params
    if outcome.grant is not None:
        fields["grant"] = outcome.grant
    if outcome.origin is not None:
        fields["origin"] = _origin_fields(outcome.origin)
    if outcome.level is not None:
        fields["level"] = outcome.level.name
    if outcome.isolation is not None:
        fields["isolation"] = outcome.isolation
    if outcome.within is not None:
        fields["within"] = outcome.within


def _origin_fields(origin: Origin) -> dict[str, str]:
    values = _origin_values(origin)
    return {name: value for name, value in zip(_ORIGIN, values, strict=True) if value is not None}
