"""The skills that are active in a session, and the tools that they pre-approve.

A skill is active while the model sees its instructions: the result of the tool ``skill`` is among the messages, and not
one of the older ones that exceed the limit. What its `allowed-tools` lists is pre-approved if the user has granted it
for this version of the skill. The tool ``skill`` then notes it in the metadata of its result, which no skill can write,
and with it the grant, if there is one that can be revoked.

A pre-approval gives no rights: it answers the question of a guard about a call that may happen anyway.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any
from urllib.parse import quote

from attrs import frozen

from .contexts import SkillUses
from .models._messages import Message, ToolResultMessage

__all__ = [
    "ALLOWED_KEY",
    "COMMAND_PREFIX",
    "GRANT_KEY",
    "SKILL_TOOL",
    "PreApproval",
    "active_skills",
    "allows",
    "changing_tools",
    "mapped_tools",
    "pre_approvals",
    "pre_approving",
]

SKILL_TOOL = "skill"
"""The tool whose results contain the instructions of skills."""
ALLOWED_KEY = "allowed_tools"
"""The key in the metadata of its results: the tools that the user has granted to be pre-approved."""
GRANT_KEY = "skill_grant"
"""The key in this metadata: the version of the skill that has the grant; missing if the user approved it once."""
COMMAND_PREFIX = "exec 2>&1; "
"""What the tool ``command`` writes before a command line, so that errors are in the output where they occurred."""
_MOST_TOKENS = 18_000
_CHARACTERS_PER_TOKEN = 4
_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)(?:\((.*)\))?\Z", re.DOTALL)
# The names of the format, and the tools that do the same here. Those of the second kind only read.
_CHANGING: Mapping[str, tuple[str, ...]] = {
    "bash": ("command",),
    "edit": ("edit",),
    "multiedit": ("edit",),
    "skill": ("skill_run",),
    "task": ("subagent",),
    "write": ("write",),
}
_READING: Mapping[str, tuple[str, ...]] = {
    "agentoutput": ("output",),
    "askuserquestion": ("ask",),
    "bashoutput": ("command_output",),
    "glob": ("glob",),
    "grep": ("grep",),
    "killbash": ("command_stop",),
    "killshell": ("command_stop",),
    "ls": ("list",),
    "read": ("read",),
    "todoread": ("todo",),
    "todowrite": ("todo",),
    "webfetch": ("fetch",),
    "websearch": ("search",),
}
_LIMITED = frozenset({"command"})
_SHELLS = frozenset({"bash", "dash", "sh"})
# In a text without these characters, a shell runs one program, with the words as they are written.
_SPECIAL = re.compile(r"[;&|<>`$\\(){}\[\]*?~#!\n\r=]")


def mapped_tools(listed: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tools that entries of `allowed-tools` mean here, and the entries that mean none.

    Args:
        listed: the entries, as written.

    Example:
        >>> mapped_tools(["Read", "Bash(git:*)", "MultiEdit", "NotebookEdit"])
        (('read', 'command(git *)', 'edit'), ('NotebookEdit',))
    """
    found: dict[str, None] = {}
    unknown: list[str] = []
    for entry in listed:
        names = _meaning(entry)
        found.update(dict.fromkeys(names))
        if not names:
            unknown.append(entry)
    return tuple(found), tuple(unknown)


def changing_tools(listed: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``mapped_tools`` that change something: the others are not asked about anyway.

    Example:
        >>> changing_tools(["Read", "Bash(git:*)", "MultiEdit", "NotebookEdit"])
        ('command(git *)', 'edit')
    """
    reading = {name for names in _READING.values() for name in names}
    return tuple(one for one in mapped_tools(listed)[0] if one not in reading)


def active_skills(messages: Sequence[Message]) -> tuple[ToolResultMessage, ...]:
    """Return the results that contain the instructions of the active skills, newest first.

    They have 18,000 tokens together; the newest one is always included.

    Args:
        messages: the messages of a session.
    """
    found: list[ToolResultMessage] = []
    seen: set[object] = set()
    size = 0
    for message in reversed(messages):
        if not (isinstance(message, ToolResultMessage) and message.tool == SKILL_TOOL and not message.is_error):
            continue
        name = message.metadata.get("skill")
        if name is None or name in seen:
            continue
        seen.add(name)
        size += len(message.text) // _CHARACTERS_PER_TOKEN
        if found and size > _MOST_TOKENS:
            break
        found.append(message)
    return tuple(found)


@frozen
class PreApproval:
    """A tool that an active skill pre-approves.

    Attributes:
        skill: the name of the skill.
        uses: what must be granted to its version now; ``None`` if the user approved it for as long as it is active.
    """

    skill: str
    uses: SkillUses | None = None


def pre_approving(tool: str) -> str:
    """Return the capability that pre-approves a tool.

    Example:
        >>> pre_approving("edit")
        'skills:allow=edit'
    """
    return f"skills:allow={quote(tool, safe='')}"


def pre_approvals(messages: Sequence[Message], tool: str, words: Sequence[str] = ()) -> Iterator[PreApproval]:
    """Yield what pre-approves a tool: one for each active skill that lists it.

    Args:
        messages: the messages of the session.
        tool: the name of the tool.
        words: for ``command``: the program and its arguments.
    """
    for message in active_skills(messages):
        allowed = message.metadata.get(ALLOWED_KEY)
        for one in allowed if isinstance(allowed, list) else ():
            if allows(str(one), tool, words):
                skill = str(message.metadata["skill"])
                yield PreApproval(skill, _uses(skill, str(one), message.metadata.get(GRANT_KEY)))


def _uses(skill: str, tool: str, version: Any) -> SkillUses | None:
    if version is None:
        return None
    key, digest, source = (str(version[name]) for name in ("key", "digest", "source"))
    return SkillUses(skill, key, digest, source, (pre_approving(tool),), version["of_project"] is not False)


def _meaning(entry: str) -> tuple[str, ...]:
    match = _ENTRY.match(entry.strip())
    if match is None:
        return ()
    name, pattern = match[1].lower(), (match[2] or "").strip()
    tools = _CHANGING.get(name) or _READING.get(name) or ()
    if pattern in {"", "*", ":*"}:
        return tools
    # A pattern of another tool, such as `Read(src/**)`, would be wider without it.
    return tuple(f"{one}({_command(pattern)})" for one in tools if one in _LIMITED and _command(pattern))


def _command(pattern: str) -> str:
    """Return a pattern of a command as words, with `*` for any further ones; empty if it cannot be one."""
    text, any_more = pattern, pattern.endswith("*")
    if any_more:
        text = text[:-1].removesuffix(":").rstrip()
        if pattern[-2:-1] not in {":", " "}:
            return ""
    if not text or _SPECIAL.search(text):
        return ""
    return f"{' '.join(text.split())}{' *' if any_more else ''}"


def allows(allowed: str, tool: str, words: Sequence[str] = ()) -> bool:
    """Return whether a tool of ``mapped_tools`` is the one that is called.

    Args:
        allowed: the tool, such as ``edit`` or ``command(git *)``.
        tool: the name of the tool that is called.
        words: for ``command``: the program and its arguments.

    Example:
        >>> [allows("command(git *)", "command", ["sh", "-c", line]) for line in ("git log", "git log; rm x")]
        [True, False]
    """
    name, _, pattern = allowed.partition("(")
    if name != tool:
        return False
    if not pattern:
        return True
    expected = pattern.removesuffix(")").split(" ")
    program = _program(words)
    fixed = [*takewhile(lambda word: word != "*", expected)]
    return program[: len(fixed)] == fixed and (len(program) == len(fixed) or expected[-1] == "*")


def _program(words: Sequence[str]) -> list[str]:
    """Return the words of the only program that a command runs; empty if it may run another one."""
    if len(words) == 3 and words[0] in _SHELLS and words[1] == "-c":
        line = words[2].removeprefix(COMMAND_PREFIX)
        if _SPECIAL.search(line):
            return []
        try:
            return shlex.split(line)
        except ValueError:
            return []
    return list(words)
