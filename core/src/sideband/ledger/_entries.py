"""The records of an effect: the intent before it, the outcome after it, and both combined when read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from ..ops import Level, Origin
from ._fields import read_fields
from ._lines import LedgerLine

Status = Literal["done", "failed", "denied", "cancelled", "unknown"]
"""How a dispatch ended."""


@frozen(kw_only=True)
class Intent:
    """The record of an effect before it happens. It is written before the op runs.

    Args:
        effect: the id of the effect, from ``Ledger.new_effect_id``.
        op: the name of the op.
        params: the recordable parameters, redacted.
        grant: the capabilities that the host held for the call, as strings.
        origin: the origin of the effect.
        level: the level of the effect.
        key: the idempotency key, if any.
        decisions: the decisions of the guards and of the grant check, in order, as plain data.
        isolation: the isolation tier of the worker that dispatched the op, or ``None`` without a worker.
        granted_by: the source of each capability in ``grant``, in the same order: ``call`` (the caller), ``policy``
            (the configuration), ``remembered`` (an earlier answer of the user), ``person`` (an answer just now), or an
            empty string if a plugin narrowed it.
        within: the id of the enclosing effect, if another op dispatched this one.
        code: a digest of the code that caused the effect, if it is a skill's. Written only if there is a ``key``.
        rights: all capabilities of the call, as strings. Written only if there is a ``key``.
        params_digest: the digest of all parameters except secrets. Written only if there is a ``key``.
        note: the data that the host adds for an op of its own. When read back, also the notes that the op made while it
            ran, which have their own lines.
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
    code: str = ""
    rights: tuple[str, ...] = ()
    params_digest: str = ""
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
        key: the idempotency key.
        error: the error as data, redacted.
        ms: the duration in milliseconds.
        bytes: the size of the answer in bytes.
        decisions: all decisions, if any were added after the intent. Otherwise those of the intent apply.
        result: the redacted result, for later dispatches with the same key. Written only if there is a ``key``.
        state: what is certain about the effect of the ``key``: ``done``, ``failed`` (it did not happen, and the key is
            free), ``repeatable`` (the same effect may use the key again), or ``unknown``.
        rights: the capabilities that the effect used, if they are known. Otherwise those of the intent apply. Written
            only if there is a ``key``.
        note: the notes that the op made while it ran, repeated so that intent and outcome are complete.
        params: the recorded parameters.
        grant: the capabilities that the call has.
        origin: who requested the effect.
        level: the level of the effect.
        isolation: the isolation of the worker that requested it.
        within: the id of the enclosing effect, if another op dispatched this one.
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
    state: str | None = None
    rights: tuple[str, ...] | None = None
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
        kind: ``open``, ``close``, ``load``, ``intent``, ``note``, ``outcome``, ``rotate``, ``recovery`` or
            ``mismatch``.
        fields: all fields of the line.
        erased: whether its content was erased or changed, so that fields are missing.
    """

    seq: int
    time: str
    kind: str
    fields: Mapping[str, Any]
    erased: bool = False

    @classmethod
    def from_line(cls, line: LedgerLine) -> LedgerEntry:
        """Return the entry for a parsed line."""
        erased = line.content in {"erased", "changed"}
        return cls(line.seq, str(line.fields.get("time", "")), line.kind, line.fields, erased)


@frozen(kw_only=True)
class EffectRecord(Intent):
    """The complete record of one effect: its intent, notes and outcome.

    Attributes:
        effect: the id of the effect.
        op: the name of the op.
        status: the outcome, or ``None`` if no outcome is recorded.
        error: the error as data, redacted.
        ms: the duration in milliseconds.
        bytes: the size of the answer in bytes.
        result: the redacted result, if the effect has a key.
        time: the time at which the effect began or was denied.
        state: what is certain about the effect of the key, as in ``Outcome``.
        erased: whether content of a line was erased or changed, so that fields are missing.
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
    state: str | None = None
    erased: bool = False
    secrets: str | None = None
    entries: tuple[LedgerEntry, ...] = field(default=(), repr=False)

    @classmethod
    def from_entries(cls, entries: tuple[LedgerEntry, ...]) -> EffectRecord:
        """Merge the lines of one effect, given in the order in which they were written."""
        merged: dict[str, Any] = {}
        for entry in entries:
            merged.update(entry.fields)
        erased = any(entry.erased for entry in entries)
        return cls(**{**read_fields(cls, merged), "time": entries[0].time, "entries": entries, "erased": erased})
