"""Ledger entries, effects and verdicts as text and as data."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .._terminal._tables import format_table, paragraph
from .._terminal._words import fitted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sideband.ledger import EffectRecord, LedgerEntry, Verification

_INDENT = 14
_GIVERS = {
    "call": "granted by whoever made the call",
    "policy": "granted by the configuration",
    "remembered": "granted by a person earlier, and remembered",
    "person": "granted by a person who was asked",
}
_LONGEST_VALUE = 600


def describe_verdict(verdict: Verification) -> str:
    """What `audit verify` found."""
    head = f", the last one is {verdict.head.hash[:16]}…" if verdict.head else ""
    if verdict.ok and verdict.notices:
        # A note says what can't be told, so that the sentence must not tell it either.
        lines = [f"Nothing wrong was found in {verdict.entries} entries{head}; but:"]
    elif verdict.ok:
        lines = [f"The ledger is whole: {verdict.entries} entries, none changed, removed, inserted or reordered{head}"]
    else:
        lines = [
            f"The ledger is NOT whole ({verdict.entries} entries read):",
            *(f"  {one}" for one in verdict.problems),
        ]
    return "\n".join([*lines, *(f"  note: {one}" for one in verdict.notices)])


def verdict_data(verdict: Verification) -> dict[str, Any]:
    """A verdict as data."""
    return {
        "ok": verdict.ok,
        "entries": verdict.entries,
        "head": verdict.head.as_dict() if verdict.head else None,
        "problems": [{"segment": one.segment, "line": one.line, "reason": one.reason} for one in verdict.problems],
        "notices": [{"segment": one.segment, "line": one.line, "reason": one.reason} for one in verdict.notices],
    }


def entries_table(entries: Iterable[LedgerEntry]) -> str:
    """Entries, one a line."""
    rows = [
        [entry.seq, local_time(entry.time), entry.kind, entry.fields.get("effect", ""), *_what(entry.fields)]
        for entry in entries
    ]
    return format_table(["seq", "time", "kind", "effect", "op", "status", "by"], rows) if rows else "no entries"


def _what(fields: Any) -> list[str]:
    origin = fields.get("origin") or {}
    by = ".".join(filter(None, (origin.get("skill"), origin.get("tool")))) or origin.get("plugin") or ""
    return [fields.get("op", ""), fields.get("status", ""), by or origin.get("principal", "")]


def effects_table(records: Iterable[EffectRecord]) -> str:
    """Effects, one a line."""
    rows = [
        [record.effect, local_time(record.time), record.op, record.status or "open", _by(record), _params(record)]
        for record in records
    ]
    return format_table(["effect", "time", "op", "status", "by", "parameters"], rows) if rows else "no effects"


def _by(record: EffectRecord) -> str:
    origin = record.origin
    return ".".join(filter(None, (origin.skill, origin.tool))) or origin.plugin or origin.principal


def _params(record: EffectRecord) -> str:
    return json.dumps(dict(record.params), ensure_ascii=False) if record.params else ""


def describe_effect(record: EffectRecord) -> str:
    """One effect from who asked to how it ended."""
    origin = record.origin
    asked = [f"{name} {value}" for name in ("session", "run", "step") if (value := getattr(origin, name))]
    by = f"{_by(record)}, for {origin.principal}" + (f" ({', '.join(asked)})" if asked else "")
    lines = [f"effect {record.effect}: {record.op}, {record.status or 'open: no outcome is recorded'}"]
    lines += labelled("asked by", by)
    if record.within:
        lines += labelled("part of", record.within)
    lines += labelled("parameters", _params(record) or "none that may be recorded")
    lines += _rights(record)
    lines += labelled("level", record.level.name.lower() if record.level is not None else "-")
    lines += labelled("isolation", record.isolation or "no worker asked")
    lines += [line for one in record.decisions for line in labelled("decision", describe_decision(one))]
    if record.key:
        lines += labelled("key", record.key)
    if record.note:
        lines += labelled("noted", json.dumps(dict(record.note), ensure_ascii=False, default=str))
    if record.ms is not None:
        lines += labelled("took", f"{record.ms} ms, answered with {record.bytes or 0} bytes")
    if record.error:
        lines += labelled("error", f"{record.error.get('message')} [{record.error.get('code')}]")
        if hint := record.error.get("hint"):
            lines += labelled("hint", str(hint))
    for entry in record.entries:
        lines += labelled("entry", f"{entry.seq} {local_time(entry.time)} {entry.kind}")
    return "\n".join(lines)


def labelled(label: str, text: str) -> list[str]:
    """A value behind its name, on as many lines as the terminal needs; cut where it gets long."""
    return paragraph(fitted(one_line(text), _LONGEST_VALUE), f"  {label:<11} ", " " * _INDENT).splitlines() or [
        f"  {label}"
    ]


def effect_label(record: EffectRecord) -> str:
    """An effect in a few words; a tool call by its tool."""
    tool = record.params.get("tool") if record.op == "tool.call" else None
    return f"{tool or record.op}, {record.status or 'open'}"


def describe_decision(decision: Mapping[str, Any]) -> str:
    """What a guard, or whoever it asked, said of an effect."""
    note = decision.get("note")
    return f"{decision.get('plugin') or decision.get('by')}: {decision.get('said')}" + (f", {note}" if note else "")


def _rights(record: EffectRecord) -> list[str]:
    if record.status == "denied":
        return labelled("held", ", ".join(record.grant) or "no capability")
    if not record.grant:
        return labelled("allowed by", "no capability is needed, or none was held")
    givers = (*record.granted_by, *[""] * (len(record.grant) - len(record.granted_by)))
    lines = []
    for capability, giver in zip(record.grant, givers, strict=False):
        said = f"{capability}, {_GIVERS.get(giver, giver)}" if giver else capability
        lines += labelled("allowed by", said)
    return lines


def local_time(time: str) -> str:
    """A time of the ledger, which is in UTC, as `--since` takes it: local, with the offset."""
    try:
        return datetime.fromisoformat(time).astimezone().isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return time


def record_data(record: EffectRecord) -> dict[str, Any]:
    """An effect as data: its ledger entries as they are."""
    return {
        "effect": record.effect,
        "op": record.op,
        "status": record.status,
        "entries": [dict(entry.fields) for entry in record.entries],
    }
