"""The records of loaded plugins as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._terminal._tables import format_table
from ._record_text import labeled, local_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sideband.ledger import LedgerEntry

_DIGITS = 16


def loads_table(entries: Iterable[LedgerEntry]) -> str:
    """Format loads of plugins as a table."""
    rows = [
        [one.seq, local_time(one.time), one.fields.get("plugin", ""), package(one.fields), status(one.fields)]
        for one in entries
    ]
    return format_table(["seq", "time", "plugin", "package", "status"], rows) if rows else "no loads"


def describe_loads(entries: Iterable[LedgerEntry]) -> str:
    """Describe loads of one plugin, newest first."""
    return "\n".join(line for one in entries for line in _lines(one))


def load_text(entry: LedgerEntry) -> str:
    """Return one line about the package of a plugin that took part in an effect."""
    return f"{entry.fields.get('plugin')} of {package(entry.fields)}, entry {entry.seq}{_digest(entry.fields)}"


def package(fields: Mapping[str, Any]) -> str:
    """Return the distribution and its version."""
    return f"{fields.get('distribution', '?')} {fields.get('version', '?')}"


def status(fields: Mapping[str, Any]) -> str:
    """Return how far the load came, and why it failed."""
    replaces = f", in place of {fields['replaces']}" if fields.get("replaces") else ""
    error = fields.get("error")
    reason = f": {error.get('message')}" if isinstance(error, dict) else ""
    return f"{fields.get('status', '')}{replaces}{reason}"


def _lines(entry: LedgerEntry) -> list[str]:
    fields = entry.fields
    how = "editable" if fields.get("editable") else f"installed by {fields.get('installer') or 'an unknown tool'}"
    place = f"{fields.get('location')}, {how}" if fields.get("location") else "in memory"
    return [
        f"entry {entry.seq}: {fields.get('plugin')}, {local_time(entry.time)}",
        *labeled("status", status(fields)),
        *labeled("package", package(fields)),
        *labeled("object", str(fields.get("value") or "-")),
        *labeled("location", place),
        *(labeled("from", str(fields["source"])) if fields.get("source") else ()),
        *labeled("digest", str(fields.get("digest") or "not known")),
        *labeled("for", str(fields.get("principal", ""))),
    ]


def _digest(fields: Mapping[str, Any]) -> str:
    digest = fields.get("digest")
    return f", digest {str(digest)[:_DIGITS]}…" if digest else ""
