"""List the files that a conversation has read and changed. A summary may lose them; these lists do not."""

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
_MAX = 100
_WORDS = re.compile(r"[a-z0-9]+")
_BLOCKS = re.compile(r"\n*<(files-read|files-changed)>.*?</\1>", re.DOTALL)


@frozen
class FileLists:
    """Paths as passed to the tools, oldest first, each in one list only.

    Attributes:
        read: files that were read and not changed.
        modified: files that were changed.
    """

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


NO_FILES: Final = FileLists()


def files_of(
    messages: Sequence[Message], earlier: FileLists = NO_FILES, *, read_only: Collection[str] = ()
) -> FileLists:
    """Return the files that the tools of some messages read and changed, appended to the earlier lists.

    The words of a tool's name decide whether it reads or changes files. Failed calls are ignored. Each list keeps the
    newest 100 paths.

    Args:
        messages: the messages, oldest first.
        earlier: the earlier lists.
        read_only: the names of tools, as models see them, that change nothing.
    """
    failed = {one.call for one in messages if isinstance(one, ToolResultMessage) and one.is_error}
    read, modified = dict.fromkeys(earlier.read), dict.fromkeys(earlier.modified)
    for message in messages:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            changes = call.name not in read_only and _has_word(call.name, _CHANGING)
            if call.id in failed or not (changes or call.name in read_only or _has_word(call.name, _READING)):
                continue
            for path in _paths(call.arguments):
                files = modified if changes else read
                files.pop(path, None)
                files[path] = None
    return FileLists(tuple(path for path in read if path not in modified)[-_MAX:], tuple(modified)[-_MAX:])


def _has_word(tool: str, verbs: re.Pattern[str]) -> bool:
    return any(verbs.fullmatch(word) for word in _WORDS.findall(tool.lower()))


def _paths(arguments: Mapping[str, Any]) -> Iterable[str]:
    for name, value in arguments.items():
        if name in _NAMES:
            for path in value if isinstance(value, list) else (value,):
                if isinstance(path, str) and 0 < len(path) <= _LONGEST_PATH and path.isprintable():
                    yield path


def with_file_lists(summary: str, read: Iterable[str], modified: Iterable[str]) -> str:
    """Append the lists that are not empty to a summary.

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
    """Return a summary without its file lists."""
    return _BLOCKS.sub("", summary)
