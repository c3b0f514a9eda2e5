"""Ledger entries, effects and verification results as text and as data."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sideband.command_line import joined

from .._terminal._columns import fitted
from .._terminal._tables import format_table, paragraph
from .._terminal._words import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sideband.ledger import EffectRecord, LedgerEntry, Verification

_INDENT = 14
_GRANTED_BY = {
    "call": "granted by the caller",
    "policy": "granted by the configuration",
    "remembered": "granted by the user in an earlier call",
    "person": "granted by the user for this call",
}
_MAX_VALUE_LENGTH = 600


def describe_verdict(verdict: Verification) -> str:
    """Describe the result of `audit verify`."""
    head = f" The hash of the last one is {verdict.head.hash[:16]}…" if verdict.head else ""
    if verdict.ok and verdict.notices:
        # A note names something that could not be checked, so the sentence must not claim it.
        lines = [f"No problem was found in {verdict.entries} entries, but some could not be checked.{head}"]
    elif verdict.ok:
        checks = "changed, removed, inserted, reordered or truncated"
        lines = [f"The ledger is intact: none of its {verdict.entries} entries was {checks}.{head}"]
    else:
        lines = [
            f"The ledger is NOT intact ({verdict.entries} entries read):",
            *(f"  {one}" for one in verdict.problems),
        ]
    return joined([*lines, *(f"  note: {one}" for one in verdict.notices)])


def verdict_data(verdict: Verification) -> dict[str, Any]:
    """Return a verification result as data."""
    return {
        "ok": verdict.ok,
        "entries": verdict.entries,
        "head": verdict.head.as_dict() if verdict.head else None,
        "problems": [{"segment": one.segment, "line": one.line, "reason": one.reason} for one in verdict.problems],
        "notices": [{"segment": one.segment, "line": one.line, "reason": one.reason} for one in verdict.notices],
    }


def entries_table(entries: Iterable[LedgerEntry]) -> str:
    """Format ledger entries as a table."""
    rows = [
        [entry.seq, local_time(entry.time), entry.kind, entry.fields.get("effect", ""), *_op_columns(entry.fields)]
        for entry in entries
    ]
    return format_table(["seq", "time", "kind", "effect", "op", "status", "by"], rows) if rows else "no entries"


def _op_columns(fields: Any) -> list[str]:
    origin = fields.get("origin") or {}
    by = ".".join(filter(None, (origin.get("skill"), origin.get("tool")))) or origin.get("plugin") or ""
    by = by or origin.get("principal") or fields.get("principal", "")
    return [fields.get("op") or fields.get("plugin", ""), fields.get("status", ""), by]


def effects_table(records: Iterable[EffectRecord]) -> str:
    """Format effects as a table."""
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
    """Describe one effect, from its caller to its outcome."""
    origin = record.origin
    place = [f"{name} {value}" for name in ("session", "run", "step") if (value := getattr(origin, name))]
    place += [f"mode {origin.approval_mode}"] if origin.approval_mode else []
    by = f"{_by(record)}, for {origin.principal}" + (f" ({', '.join(place)})" if place else "")
    lines = [f"effect {record.effect}: {one_line(record.op)}, {record.status or 'open: no outcome is recorded'}"]
    lines += labeled("caller", by)
    if record.within:
        lines += labeled("parent", record.within)
    lines += labeled("parameters", _params(record) or ("erased" if record.erased else "not recorded"))
    lines += _rights(record)
    lines += labeled("level", record.level.name.lower() if record.level is not None else "-")
    lines += labeled("isolation", record.isolation or "not called by a worker")
    lines += [line for one in record.decisions for line in labeled("decision", describe_decision(one))]
    if record.key:
        lines += labeled("key", record.key)
    if record.note:
        lines += labeled("op note", json.dumps(dict(record.note), ensure_ascii=False, default=str))
    if record.ms is not None:
        lines += labeled("duration", f"{record.ms} ms, result of {record.bytes or 0} bytes")
    if record.error:
        lines += labeled("error", f"{record.error.get('message')} [{record.error.get('code')}]")
        if hint := record.error.get("hint"):
            lines += labeled("hint", str(hint))
    for entry in record.entries:
        lines += labeled("entry", f"{entry.seq} {local_time(entry.time)} {entry.kind}")
    return "\n".join(lines)


def labeled(label: str, text: str) -> list[str]:
    """Return the lines of a labeled value, wrapped to the terminal and cut at 600 characters."""
    return paragraph(fitted(one_line(text), _MAX_VALUE_LENGTH), f"  {label:<11} ", " " * _INDENT).splitlines() or [
        f"  {label}"
    ]


def effect_label(record: EffectRecord) -> str:
    """Return the name and status of an effect; a tool call is named by its tool."""
    tool = record.params.get("tool") if record.op == "tool.call" else None
    return f"{tool or record.op}, {record.status or 'open'}"


def describe_decision(decision: Mapping[str, Any]) -> str:
    """Describe the decision of a guard or an approver."""
    note = decision.get("note")
    return f"{decision.get('plugin') or decision.get('by')}: {decision.get('said')}" + (f", {note}" if note else "")


def _rights(record: EffectRecord) -> list[str]:
    if record.status == "denied":
        return labeled("held", ", ".join(record.grant) or "no capability")
    if not record.grant:
        return labeled("allowed by", "no capability (not required, or the grant was empty)")
    sources = (*record.granted_by, *[""] * (len(record.grant) - len(record.granted_by)))
    lines = []
    for capability, source in zip(record.grant, sources, strict=False):
        owner, _, giver = source.rpartition(" ") if source.startswith("plugin:") else ("", "", source)
        of_plugin = f"a right of the plugin `{owner.removeprefix('plugin:')}`" if owner else ""
        text = ", ".join(filter(None, (capability, of_plugin, _GRANTED_BY.get(giver, giver))))
        lines += labeled("allowed by", text)
    return lines


def local_time(time: str) -> str:
    """Convert a UTC time of the ledger to local time with an offset, the format that `--since` accepts."""
    try:
        return datetime.fromisoformat(time).astimezone().isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return time


def record_data(record: EffectRecord) -> dict[str, Any]:
    """Return an effect as data, with its ledger entries unchanged."""
    return {
        "effect": record.effect,
        "op": record.op,
        "status": record.status,
        "entries": [dict(entry.fields) for entry in record.entries],
    }
