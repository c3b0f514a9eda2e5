"""Tool calls as clients show them: their kind, title, places and results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    ImageContentBlock,
    TerminalToolCallContent,
    ToolCallLocation,
    ToolKind,
)
from attrs import frozen
from sideband.hooks import thaw
from sideband.rendering import render

from ._changes import Changes
from ._text import shown, span

Content = list[ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent]

_KINDS: dict[str, ToolKind] = {
    "read": "read",
    "list": "read",
    "image": "read",
    "output": "read",
    "history": "read",
    "write": "edit",
    "edit": "edit",
    "glob": "search",
    "grep": "search",
    "command": "execute",
    "command_output": "execute",
    "skill_run": "execute",
    "fetch": "fetch",
    "search": "fetch",
    "todo": "think",
    "plan": "switch_mode",
}
_TELLING = ("command", "path", "pattern", "url", "query", "task", "name", "key", "text")
"""The arguments that say best what a call does."""


@frozen
class DescribedCall:
    """A tool call.

    Attributes:
        id: its id.
        tool: the name of the tool.
        title: what it does, on one line of Markdown.
        kind: the kind of tool.
        arguments: its arguments, as they are shown.
        locations: the files that it works on.
    """

    id: str
    tool: str
    title: str
    kind: ToolKind
    arguments: dict[str, Any]
    locations: list[ToolCallLocation]


def described(call: str, tool: str, arguments: Mapping[str, Any], changes: Changes) -> DescribedCall:
    """Describe a tool call."""
    name = tool.replace("__", ".")
    values: dict[str, Any] = thaw(arguments)
    return DescribedCall(
        id=call,
        tool=name,
        title=_title(name, values),
        kind=_KINDS.get(name, "other"),
        arguments=shown_values(values),
        locations=_locations(name, values, changes),
    )


def shown_values(value: Any) -> Any:
    """Return JSON data without characters that hide or move text: clients show it as it is, some on a terminal."""
    if isinstance(value, dict):
        return {render(str(key)): shown_values(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shown_values(one) for one in value]
    return render(value, prose=True) if isinstance(value, str) else value


def _title(name: str, arguments: Mapping[str, Any]) -> str:
    shown_name = name if name in _KINDS else span(name)
    telling = next((arguments[one] for one in _TELLING if isinstance(arguments.get(one), str)), None)
    if telling is None and arguments:
        telling = json.dumps(arguments, ensure_ascii=False, default=str)
    return f"{shown_name} {span(telling)}" if telling else shown_name


def _locations(name: str, arguments: Mapping[str, Any], changes: Changes) -> list[ToolCallLocation]:
    path, first = arguments.get("path"), arguments.get("first")
    if _KINDS.get(name) not in ("read", "edit", "search") or not isinstance(path, str):
        return []
    line = first if isinstance(first, int) and first > 0 else None
    return [ToolCallLocation(path=changes.absolute(path), line=line)]


def result_content(parts: Sequence[Mapping[str, Any]]) -> Content:
    """Return the parts of a result as content."""
    found: Content = []
    for part in parts:
        if part.get("type") == "text" and part["text"]:
            found.append(shown(part["text"]))
        elif part.get("type") == "image":
            image = ImageContentBlock(type="image", data=part["data"], mime_type=part["media_type"])
            found.append(ContentToolCallContent(type="content", content=image))
    return found


def result_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a result, as it is shown."""
    return render("\n".join(part["text"] for part in parts if part.get("type") == "text"), prose=True)
