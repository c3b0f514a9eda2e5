"""Which files a conversation has read and changed: a summary may forget that, the lists do not."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from sideband.messages import AssistantMessage, Message, ToolResultMessage

_NAMES = frozenset(
    {"path", "paths", "file", "files", "file_path", "file_paths", "filename", "filenames", "source", "target"}
)
_CHANGING = re.compile(
    r"append|apply|change|copy|create|delete|edit|insert|modify|move|patch|put|remove|rename|replace|save|store|update"
    r"|write"
)
_READING = re.compile(r"cat|find|get|glob|grep|head|list|load|ls|open|read|search|show|stat|tail|view")
_LONGEST_PATH = 500
_MOST = 100
_WORDS = re.compile(r"[a-z0-9]+")
_BLOCKS = re.compile(r"\n*<(files-read|files-changed)>.*?</\1>", re.DOTALL)


@frozen
class FileLists:
    """Paths as the tools were given them, oldest first, each in one list only.

    Attributes:
        read: what was read and not changed.
        modified: what was changed.
    """

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


NO_FILES: Final = FileLists()


def files_of(
    messages: Sequence[Message], earlier: FileLists = NO_FILES, *, read_only: Collection[str] = ()
) -> FileLists:
    """The files that the tools of some messages read and changed, after those that are known already.

    What a tool does is told by the words of its name. Calls that failed do not count. Each list holds the newest 100.

    Args:
        messages: oldest first.
        earlier: the lists before.
        read_only: the names of tools, as models see them, that change nothing.
    """
    failed = {one.call for one in messages if isinstance(one, ToolResultMessage) and one.is_error}
    read, modified = dict.fromkeys(earlier.read), dict.fromkeys(earlier.modified)
    for message in messages:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            changes = call.name not in read_only and _says(call.name, _CHANGING)
            if call.id in failed or not (changes or call.name in read_only or _says(call.name, _READING)):
                continue
            for path in _paths(call.arguments):
                files = modified if changes else read
                files.pop(path, None)
                files[path] = None
    return FileLists(tuple(path for path in read if path not in modified)[-_MOST:], tuple(modified)[-_MOST:])


def _says(tool: str, verbs: re.Pattern[str]) -> bool:
    return any(verbs.fullmatch(word) for word in _WORDS.findall(tool.lower()))


def _paths(arguments: Mapping[str, Any]) -> Iterable[str]:
    for name, value in arguments.items():
        if name in _NAMES:
            for path in value if isinstance(value, list) else (value,):
                if isinstance(path, str) and 0 < len(path) <= _LONGEST_PATH and path.isprintable():
                    yield path


def with_file_lists(summary: str, read: Iterable[str], modified: Iterable[str]) -> str:
    """A summary with the two lists below it, as far as they are not empty.

    Example:
        >>> print(with_file_lists("Done.", ["a.txt"], []))
        Done.
        <BLANKLINE>
        <files-read>
        a.txt
        </files-read>
    """
    blocks = (("files-read", tuple(read)), ("files-changed", tuple(modified)))
    listed = (f"<{name}>\n{chr(10).join(files)}\n</{name}>" for name, files in blocks if files)
    return "\n\n".join((summary, *listed))


def without_file_lists(summary: str) -> str:
    """The summary alone."""
    return _BLOCKS.sub("", summary)
