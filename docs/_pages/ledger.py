"""The page on the ledger: the format of its lines, and the hash chain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sideband.ledger import Intent, LedgerEntry, Outcome
from sideband.ledger._fields import line_fields
from sideband.ledger._lines import ERASABLE, GENESIS, VERSION, draft, seal
from sideband.ledger._verify import Verification
from sideband.ops import Level, Origin

from .docstrings import attributes, first_paragraph
from .tables import paragraph, table

__all__ = ["ledger_page"]

_KINDS = {
    "open": "a host has opened the ledger: `host`, `pid`",
    "close": "a host has closed the ledger: `host`",
    "load": "a host is about to import the code of a plugin (`status` is `begun`), or could not use it (`failed`, with "
    "`error`). It has the `host`, the `plugin` as `kind.name`, its `distribution` and `version`, the `value` of its "
    "entry point, its `location`, `installer`, whether it is `editable`, the address of its `source` without "
    "credentials if it did not come from an index, the `principal` with whose rights it runs, the version that it "
    "`replaces` in a reload, and the `digest`: the SHA-256 of the `RECORD` with the hash of each file of the package, "
    "or of a local file. It is written before the code is imported, except for the store, without which there is no "
    "ledger; if it cannot be written, it precedes the next entry, so that no effect happens without it. The plugin of "
    "a command is loaded by the program, before there is a host, and is not recorded",
    "intent": "an effect is about to happen. If it changes something, the intent is on disk before the effect",
    "note": "data that the op needs to find out what happened after a crash, or to undo the effect; on disk before the "
    "op changes anything",
    "outcome": "how an effect ended; exactly one for each effect. A denied effect has an outcome without an intent",
    "rotate": "the segment is full; continues in segment `next`",
    "recovery": "a host has repaired the ledger after a crash: `host`, and `problem`, which is `torn` (an incomplete "
    "line of `bytes` bytes was removed) or `head` (the store had no head, so a cut tail cannot be detected)",
    "mismatch": "the files do not contain the last line that was written: `expected`",
}
_CHECK = """import hashlib
import sys

last = "{genesis}"
for line in open(sys.argv[1], "rb"):
    body, content, _ = line[:-1].partition(b', "content":')
    digest, body = body[9:73].decode(), b"{{" + body[75:] + (b"}}" if content else b"")
    assert hashlib.sha256(last.encode() + body).hexdigest() == digest, f"modified or out of order: {{line[:200]}}"
    last = digest
print(last)"""


def ledger_page() -> list[str]:
    """Return the lines of the page."""
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
        line_fields("intent", intent, _names(Intent)),
        {"kind": "note", "effect": "0199-1", "op": "sql.execute", "note": {"changes": "9f86d0…"}},
        line_fields("outcome", outcome, _names(Outcome)),
    ]
    return [
        "# Ledger",
        "",
        *paragraph(
            "The ledger records all effects as JSON lines, in numbered segments in `SIDEBAND_HOME/ledger`. Read it "
            "with `sideband audit`, or with any other program. Only the kernel writes it, after redacting secrets."
        ),
        "",
        "## Lines",
        "",
        *paragraph(
            f"Each line has `v` (the version, {VERSION}), `seq` (its number, from 1), `time` (UTC, ISO 8601), `prev`, "
            "`hash` and `kind`:"
        ),
        "",
        *table(["kind", "meaning"], [[f"`{kind}`", _KINDS[kind]] for kind in _kinds()]),
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
        *paragraph(
            "A line of an effect also has `secrets: closed` if the values of some secrets were unknown when it was "
            "written, so that it may contain them."
        ),
        "",
        "## The chain",
        "",
        *paragraph(
            "A line is canonical JSON (sorted keys, no white space, ASCII), except that `hash` comes first and "
            "`content` last. The hash is the SHA-256 of the previous line's hash and of this line without `hash` and "
            "`content`. The previous hash of the first line is 64 zeros. No line can be changed, removed, added or "
            "moved without changing all later lines. This program verifies the first segment independently of "
            "sideband:"
        ),
        "",
        "```python",
        *_CHECK.format(genesis=GENESIS).splitlines(),
        "```",
        "",
        *paragraph(
            "A hash chain does not reveal that lines were removed from its end. The last hash is therefore also kept "
            "in the store, and `sideband audit verify` compares the two. It reports:"
        ),
        "",
        *table(["field", "meaning"], [[f"`{name}`", text] for name, text in attributes(Verification).items()]),
        "",
        *paragraph(
            "The ledger detects modification by others. A process with the rights of the host's user can rewrite the "
            "whole ledger. To detect that, store the last hash, which `verify` prints, somewhere else."
        ),
        "",
        "## Content that can be erased",
        "",
        *paragraph(
            f"{_listed(ERASABLE)} may hold personal data. They are in the object `content`, which the hash does not "
            "cover. The rest of the line has its digest, `content_sha256`. The object includes a random `salt`, so "
            "that a guess at erased content cannot be confirmed with the digest. To erase it, replace the "
            "object by `null` and as many spaces as keep the length of the line; the chain stays intact. "
            "`sideband audit verify` reports the lines whose content was erased or changed, and the other commands "
            "show them without it. The key of an effect whose parameters or result "
            "were erased cannot be used again (`effect.key`)."
        ),
        "",
        *paragraph("Lines of version 1 have these fields beside the others, and the hash covers them."),
    ]


def _kinds() -> list[str]:
    """Return the kinds in the order of the docstring of ``LedgerEntry``."""
    return re.findall(r"`(\w+)`", attributes(LedgerEntry)["kind"])


def _chain(contents: list[Mapping[str, Any]]) -> Iterator[str]:
    last = GENESIS
    for seq, fields in enumerate(contents, start=1):
        line, last = seal(draft(fields, salt=f"{seq:032x}"), seq, f"2026-01-01T12:00:00.00{seq}000+00:00", last)
        yield line.decode().rstrip("\n")


def _names(model: type) -> list[str]:
    """Return the fields that these lines have. ``rights`` is written with a key only."""
    return [one.name for one in model.__attrs_attrs__ if one.name not in {"time", "rights"}]


def _listed(names: frozenset[str]) -> str:
    *most, last = (f"`{name}`" for name in sorted(names))
    return f"{', '.join(most)} and {last}"


def _fields(model: type, hidden: tuple[str, ...]) -> Iterator[str]:
    meanings = attributes(model)
    names = [attribute.name for attribute in model.__attrs_attrs__ if attribute.name not in hidden]
    yield from table(["field", "meaning"], [[f"`{name}`", first_paragraph(_meaning(meanings, name))] for name in names])


def _meaning(meanings: Mapping[str, str], name: str) -> str:
    """Return the description of a field. An outcome shares some fields with the intent."""
    if name == "key":
        return "the idempotency key, if it has one"
    return meanings.get(name) or "as in an intent; only in an outcome without an intent"
