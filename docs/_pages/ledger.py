"""The ledger: its lines, what stands in them, and how they hang together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sideband.ledger import Intent, LedgerEntry, Outcome
from sideband.ledger._entries import intent_fields, note_fields, outcome_fields
from sideband.ledger._lines import GENESIS, VERSION, seal
from sideband.ledger._verify import Verification
from sideband.ops import Level, Origin

from .docstrings import attributes, first_paragraph
from .tables import paragraph, table

__all__ = ["ledger_page"]

_KINDS = {
    "open": "a host has begun to write: `host`, `pid`",
    "close": "a host has ended as it should: `host`",
    "intent": "an effect is about to happen; of one that changes something, this is on the disk before it does",
    "note": "what its op will need to find out what became of it, or to take it back; on the disk before it changes "
    "anything",
    "outcome": "how an effect ended; exactly one for each. A refusal is an outcome without an intent",
    "rotate": "the segment is full, and the next one follows: `next`",
    "recovery": "a host found something that a crash left, and says what: `host`, `problem`, and the `bytes` of a torn "
    "line that were removed; or how an effect ended of which nobody had heard",
    "mismatch": "the files do not hold the last line that was known to be written: `expected`",
}
_CHECK = """import hashlib
import sys

last = "{genesis}"
for line in open(sys.argv[1], "rb"):
    digest, body = line[9:73].decode(), b"{{" + line[75:-1]
    assert hashlib.sha256(last.encode() + body).hexdigest() == digest, f"changed or out of place: {{line[:200]}}"
    last = digest
print(last)"""


def ledger_page() -> list[str]:
    """The lines of the page."""
    origin = Origin(skill="notes", tool="keep", run="4f1c")
    intent = Intent(
        effect="0199-1",
        op="sql.execute",
        params={"db": "notes.db", "sql": "…"},
        grant=("sql:path=notes.db",),
        granted_by=("remembered",),
        origin=origin,
        level=Level.CONTROLLED,
        isolation="full",
    )
    outcome = Outcome(effect="0199-1", op="sql.execute", status="done", ms=1.25, bytes=41)
    contents = [
        intent_fields(intent),
        note_fields("0199-1", "sql.execute", {"changes": "9f86d0…"}),
        outcome_fields(outcome, follows=True),
    ]
    return [
        "# Ledger",
        "",
        *paragraph(
            "The record of all effects is JSON lines in numbered segments in `SIDEBAND_HOME/ledger`. `sideband audit` "
            "reads it; any other program can, too. It is written by the core alone, after secrets were taken out."
        ),
        "",
        "## Lines",
        "",
        *paragraph(
            f"Each line has `v` (the version, {VERSION}), `seq` (its number, from 1), `time` (UTC, ISO 8601), `prev` "
            "and `hash`, and `kind`:"
        ),
        "",
        *table(["kind", "what it says"], [[f"`{kind}`", _KINDS[kind]] for kind in _kinds()]),
        "",
        "The lines of one effect:",
        "",
        "```json",
        *_chain(contents),
        "```",
        "",
        "## Fields of an intent",
        "",
        *_fields(Intent, ("note", "time")),
        "",
        "## Fields of an outcome",
        "",
        *_fields(Outcome, ()),
        "",
        "## The chain",
        "",
        *paragraph(
            "A line is canonical JSON (keys sorted, no white space, ASCII), but that `hash` stands first. Its hash is "
            "SHA-256 over the hash of the line before it and the line without `hash`; before the first line stand 64 "
            "zeros. So no line can be changed, removed, added or moved without changing all that follow. This checks "
            "the first segment with nothing of ours:"
        ),
        "",
        "```python",
        *_CHECK.format(genesis=GENESIS).splitlines(),
        "```",
        "",
        *paragraph(
            "A chain alone does not show that its end was cut off: the last hash is therefore kept in the store too, "
            "and `sideband audit verify` compares them. It tells:"
        ),
        "",
        *table(["field", "meaning"], [[f"`{name}`", text] for name, text in attributes(Verification).items()]),
        "",
        *paragraph(
            "The ledger shows what others changed. Whoever has the rights of the host's own user can write all of it "
            "anew; to be safe from that, keep the last hash, which `verify` prints, somewhere else."
        ),
    ]


def _kinds() -> list[str]:
    """The kinds, as the code that reads them lists them."""
    return re.findall(r"`(\w+)`", attributes(LedgerEntry)["kind"])


def _chain(contents: list[Mapping[str, Any]]) -> Iterator[str]:
    last = GENESIS
    for seq, fields in enumerate(contents, start=1):
        shown = {"v": VERSION, "seq": seq, "time": f"2026-01-01T12:00:00.00{seq}000+00:00", "prev": last, **fields}
        line, last = seal(shown, last)
        yield line.decode().rstrip("\n")


def _fields(model: type, hidden: tuple[str, ...]) -> Iterator[str]:
    meanings = attributes(model)
    names = [attribute.name for attribute in model.__attrs_attrs__ if attribute.name not in hidden]
    yield from table(["field", "meaning"], [[f"`{name}`", first_paragraph(_meaning(meanings, name))] for name in names])


def _meaning(meanings: Mapping[str, str], name: str) -> str:
    """What the class says of a field; an outcome says of some only that they are those of the intent."""
    if name == "key":
        return "the idempotency key, if it has one"
    return meanings.get(name) or "as in an intent; only in an outcome without one"
