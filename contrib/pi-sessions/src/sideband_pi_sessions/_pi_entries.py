"""Converts between the lines of pi's session files (version 3) and our entries.

Values that our entries cannot express are stored in the entry, as the difference between pi's line and the line that
would be written for the entry, so that an export restores the original line. Lines without a counterpart are stored
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from sideband_agent.sessions import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    ForeignEntry,
    LabelEntry,
    LeafEntry,
    MessageEntry,
    ModelEntry,
    NameEntry,
    ThinkingEntry,
    record_of,
)

from ._difference import apply, differences
from ._pi_messages import message_from_pi, message_to_pi, user_from_pi

FORMAT = "pi"
_OUR_ROLES = {"user", "assistant", "toolResult"}
# The time format of our entries.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z)?$")


def upgraded(version: int, original: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Convert a line of an older version to version 3.

    Args:
        version: the version of the line. In version 1 lines are a sequence without IDs; in version 2 messages of
            extensions have another role.
        original: the line.
        number: the number of the line, starting with 1 after the header.
    """
    line = dict(original)
    if version < 2:
        line["id"] = _number_id(number)
        line["parentId"] = _number_id(number - 1) if number > 1 else None
        if isinstance(index := line.pop("firstKeptEntryIndex", None), int):
            line["firstKeptEntryId"] = _number_id(index)
    message = line.get("message")
    if version < 3 and isinstance(message, dict) and message.get("role") == "hookMessage":
        line["message"] = {**message, "role": "custom"}
    return line


def entry_from_pi(line: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the record for a line, and the reason if it cannot be converted, or an empty string.

    Its ID and parent are copied from the line and may be invalid.
    """
    entry: Entry
    foreign: dict[str, Any] | None
    try:
        entry = _read(line)
        foreign, problem = _remainder(entry, line), ""
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        entry, foreign, problem = ForeignEntry(data={}), {"line": dict(line)}, _reason(error)
    place = {"id": line.get("id"), "parent": line.get("parentId"), "time": _time(line)}
    return {**record_of(entry), **place, **({"foreign": {FORMAT: foreign}} if foreign else {})}, problem


def entry_to_pi(entry: Entry) -> dict[str, Any]:
    """Return pi's line for an entry; entries without a counterpart in pi become extension data."""
    stored = (entry.foreign or {}).get(FORMAT)
    # pi continues at the last line of a file, so a leaf entry becomes a child of its target.
    place = {"id": entry.id, "parentId": entry.target if isinstance(entry, LeafEntry) else entry.parent}
    if isinstance(stored, dict) and isinstance(line := stored.get("line"), dict):
        return {**line, **place}
    line = _write(entry)
    if isinstance(stored, dict):
        line = apply(line, stored.get("changes"))
    return {**line, **place}


def _remainder(entry: Entry, line: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parts of the line that the entry cannot express."""
    if line["type"] == "message" and line["message"]["role"] not in _OUR_ROLES:
        return {"line": dict(line)}
    at = entry.model_copy(update={"id": line.get("id"), "parent": line.get("parentId"), "time": _time(line)})
    changes = differences({**_write(at), "id": at.id, "parentId": at.parent}, dict(line))
    return {"changes": changes} if changes else None


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return str(error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"])
    return f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)


def _read(line: Mapping[str, Any]) -> Entry:
    return _READERS[line["type"]](line)


def _read_message(line: Mapping[str, Any]) -> Entry:
    message = line["message"]
    if message["role"] == "custom":
        return _read_custom_message(message)
    if message.get("excludeFromContext"):
        return CustomEntry(plugin=FORMAT, kind=message["role"], data=message.get("command"))
    return MessageEntry(message=message_from_pi(message))


def _read_custom_message(line: Mapping[str, Any]) -> Entry:
    plugin = line["customType"]
    return CustomMessageEntry(plugin=plugin, message=user_from_pi(line["content"], plugin), display=line["display"])


def _read_compaction(line: Mapping[str, Any]) -> Entry:
    details = line.get("details")
    files = details if isinstance(details, dict) and set(details) == {"readFiles", "modifiedFiles"} else None
    return CompactionEntry(
        summary=line["summary"],
        first_kept=None if line["firstKeptEntryId"] == line["id"] else line["firstKeptEntryId"],
        tokens_before=line["tokensBefore"],
        details=None if files is not None else details,
        read_files=files["readFiles"] if files else (),
        modified_files=files["modifiedFiles"] if files else (),
    )


_READERS: dict[str, Callable[[Mapping[str, Any]], Entry]] = {
    "message": _read_message,
    "custom_message": _read_custom_message,
    "compaction": _read_compaction,
    "model_change": lambda line: ModelEntry(model=f"{line['provider']}:{line['modelId']}"),
    "thinking_level_change": lambda line: ThinkingEntry(level=line["thinkingLevel"]),
    "branch_summary": lambda line: BranchSummaryEntry(from_=line["fromId"], summary=line["summary"]),
    "custom": lambda line: CustomEntry(kind=line["customType"], data=line.get("data")),
    "label": lambda line: LabelEntry(target=line["targetId"], label=line.get("label")),
    "session_info": lambda line: NameEntry(name=line.get("name")),
}


def _write(entry: Entry) -> dict[str, Any]:
    write: Callable[[Any], dict[str, Any]] = _WRITERS.get(entry.type, _extension_body)
    body = write(entry)
    return {"type": "", "timestamp": entry.time, **body}


def _extension_body(entry: Entry) -> dict[str, Any]:
    return {"type": "custom", "customType": f"sideband.{entry.type}", "data": record_of(entry)}


def _message_body(entry: MessageEntry) -> dict[str, Any]:
    return {"type": "message", "message": message_to_pi(entry.message, entry.time)}


def _custom_message_body(entry: CustomMessageEntry) -> dict[str, Any]:
    content = message_to_pi(entry.message, entry.time)["content"]
    return {"type": "custom_message", "customType": entry.plugin, "content": content, "display": entry.display}


def _model_body(entry: ModelEntry) -> dict[str, Any]:
    provider, _, model = entry.model.partition(":")
    return {"type": "model_change", "provider": provider, "modelId": model}


def _label_body(entry: LabelEntry) -> dict[str, Any]:
    label = {} if entry.label is None else {"label": entry.label}
    return {"type": "label", "targetId": entry.target, **label}


def _custom_body(entry: CustomEntry) -> dict[str, Any]:
    kind = f"{entry.plugin}.{entry.kind}" if entry.plugin else entry.kind
    return {"type": "custom", "customType": kind, "data": entry.data}


def _branch_body(entry: BranchSummaryEntry) -> dict[str, Any]:
    return {"type": "branch_summary", "fromId": entry.from_ or "root", "summary": entry.summary}


def _compaction_body(entry: CompactionEntry) -> dict[str, Any]:
    details = entry.details
    if entry.read_files or entry.modified_files:
        details = {"readFiles": list(entry.read_files), "modifiedFiles": list(entry.modified_files)}
    return {
        "type": "compaction",
        "summary": entry.summary,
        # pi requires a first kept entry; if no entry is kept, name the compaction itself.
        "firstKeptEntryId": entry.first_kept or entry.id,
        "tokensBefore": entry.tokens_before,
        **({} if details is None else {"details": details}),
    }


_WRITERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "message": _message_body,
    "custom_message": _custom_message_body,
    "model": _model_body,
    "thinking": lambda entry: {"type": "thinking_level_change", "thinkingLevel": entry.level},
    "compaction": _compaction_body,
    "branch_summary": _branch_body,
    "label": _label_body,
    "name": lambda entry: {"type": "session_info", "name": entry.name or ""},
    "custom": _custom_body,
}


def _time(line: Mapping[str, Any]) -> str:
    time = line.get("timestamp")
    return time if isinstance(time, str) and _TIME.match(time) else ""


def _number_id(number: int) -> str:
    return f"{number:08x}"
