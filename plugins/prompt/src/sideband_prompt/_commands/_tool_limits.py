"""The tools that the run of a command may use. They only limit: what is not allowed otherwise stays so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from sideband.active_skills import COMMAND_PREFIX, allows, mapped_tools

LIMIT_KIND = "prompt.command"
"""The kind of the entry in a session: the run, the command, and the tools that its run may use."""
_SERVER = re.compile(r"mcp__([a-z][a-z0-9_]*?)(?:__([a-z0-9_]+|\*))?\Z")
_OWN = re.compile(r"[a-z][a-z0-9_]*(?:\.(?:[a-z0-9_]+|\*))?\Z")
_SHELL = ("sh", "-c")
# A child agent has its own session, to which no limit applies.
_UNLIMITED = frozenset({"subagent"})
# It only sends the definitions of tools.
_ALWAYS = frozenset({"tool_expand_tools"})


def limited_tools(entries: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the tools that entries of ``allowed-tools`` mean here, and the entries that mean none.

    Example:
        >>> limited_tools(["Read", "Bash(git:*)", "mcp__github__issue", "github.*", "Task", "NotebookEdit"])
        (['read', 'command(git *)', 'github.issue', 'github.*'], ['Task', 'NotebookEdit'])
    """
    known: list[str] = []
    unknown: list[str] = []
    for entry in entries:
        names = [one for one in _names(entry) if one not in _UNLIMITED]
        known += names
        unknown += [] if names else [entry]
    return list(dict.fromkeys(known)), unknown


def _names(entry: str) -> Sequence[str]:
    if names := mapped_tools([entry])[0]:
        return names
    if server := _SERVER.match(entry):
        return [f"{server[1]}.{server[2] or '*'}"]
    own = entry.replace("__", ".", 1)
    return [own] if _OWN.match(own) else []


def is_allowed(allowed: Iterable[str], tool: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether the run of a command may call a tool with these arguments.

    Args:
        allowed: the tools of ``limited_tools``.
        tool: the name of the tool.
        arguments: its arguments.
    """
    if tool in _ALWAYS:
        return True
    words = [*_SHELL, f"{COMMAND_PREFIX}{arguments.get('command', '')}"] if tool == "command" else []
    return any(allows(one, tool, words) or ("(" not in one and fnmatchcase(tool, one)) for one in allowed)
