"""One Markdown file that is a slash command: its front matter, and its text with arguments."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import field, frozen
from sideband_project_instructions import visible

from .._text import one_line

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]*(.*)")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")
# A parenthesis that is not closed belongs to its tool, which then means none: without it, it would mean all its uses.
_TOOL = re.compile(r"[^\s,()\[\]\"']+(?:\s*\([^)]*(?:\)|\Z))?")
_REMARK = re.compile(r"(?:^|\s)#.*")
_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9](?![0-9]))")
_LONGEST = 200


@frozen
class CommandFile:
    """A slash command that is a Markdown file.

    Attributes:
        name: what is typed after the slash.
        path: the file.
        text: what is sent, with places for the arguments.
        summary: one line about it.
        usage: its arguments, for people.
        allowed: the entries of ``allowed-tools``; ``None`` if the file does not limit the tools of its runs.
    """

    name: str
    path: Path
    text: str = field(repr=False)
    summary: str
    usage: str = ""
    allowed: tuple[str, ...] | None = None

    def expanded(self, arguments: str) -> str:
        """Return the text with arguments in their places: all for ``$ARGUMENTS``, one word for ``$1`` to ``$9``.

        Without a place for them, they follow the text. Arguments are not searched for places.

        Example:
            >>> file = CommandFile("fix", Path("fix.md"), "Fix $1 in $ARGUMENTS.", "")
            >>> file.expanded("#4 'my $1'")
            "Fix #4 in #4 'my $1'."
        """
        words = _words(arguments)

        def value(found: re.Match[str]) -> str:
            if found[1] == "ARGUMENTS":
                return arguments
            position = int(found[1]) - 1
            return words[position] if position < len(words) else ""

        text, count = _PLACE.subn(value, self.text)
        return "\n\n".join(filter(None, [text, "" if count else arguments]))


def parse_command(name: str, path: Path, content: bytes) -> CommandFile:
    r"""Return the command of a file.

    The front matter is read line by line, since hints such as ``[branch] [message]`` are not YAML.

    Example:
        >>> file = parse_command("fix", Path("fix.md"), b"---\nargument-hint: [issue] [why]\n---\nFix $1.")
        >>> file.usage, file.text, file.summary
        ('[issue] [why]', 'Fix $1.', 'Fix $1.')
    """
    text = visible(content.decode("utf-8-sig", errors="replace")).strip()
    head = _FRONT_MATTER.match(text)
    values = _values(head[1]) if head else {}
    body = text[head.end() :].strip() if head else text
    allowed = values.get("allowed-tools")
    return CommandFile(
        name=name,
        path=path,
        text=body,
        summary=one_line(_line(values, "description") or body.lstrip("# ").partition("\n")[0], _LONGEST),
        usage=one_line(_line(values, "argument-hint"), _LONGEST),
        allowed=None if allowed is None else tuple(_tools(" ".join(_REMARK.sub("", line) for line in allowed))),
    )


def _tools(text: str) -> list[str]:
    return ["(".join(part.strip() for part in entry.split("(", 1)) for entry in _TOOL.findall(text)]


def _values(head: str) -> Mapping[str, Sequence[str]]:
    """Return the lines of each value."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in head.split("\n"):
        if key := _KEY.match(line):
            current = found.setdefault(key[1].lower(), [])
            current += [key[2].strip()] if key[2].strip() else []
        elif item := _ITEM.match(line):
            current.append(item[1].strip())
    return found


def _line(values: Mapping[str, Sequence[str]], key: str) -> str:
    text = " ".join(values.get(key, ()))
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # such as an apostrophe
        return arguments.split()
