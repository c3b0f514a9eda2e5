"""Errors of these tools. The model reads these messages.

ToolsError(SidebandError)            tools.failed
├── SkillUnknown(LookupError)        tools.skill             no skill has this name
├── SkillFileUnreadable(OSError)     tools.skill_file        a file of a skill cannot be read
├── SkillFileName(ValueError)        tools.skill_file_name   a file of a skill cannot have this name
├── SkillInvalid(ValueError)         tools.skill_invalid     a skill could not be loaded with this change
├── OutsidePlaces(PermissionError)    tools.place            a path is in none of the places of the agent
├── PathProtected(PermissionError)    tools.protected        a path is in the folder of a repository's settings
├── FileNotReadable(ValueError)      tools.file              a file is neither text nor an image
├── FileNotRead(RuntimeError)        tools.unread            a file was not read before it was to be changed
├── FileStale(RuntimeError)          tools.stale             a file was changed since it was read
├── TextNotFound(LookupError)        tools.no_match          the text to replace does not occur
├── TextNotUnique(ValueError)        tools.multiple_matches  the text to replace occurs several times
├── TextTooLong(ValueError)          tools.text_size         a text would be too long after a replacement
├── TextNotEncodable(ValueError)     tools.encoding          the encoding of a file lacks a character
├── DocumentUnreadable(ValueError)   tools.document          a web page or PDF file cannot be read
├── AddressInvalid(ValueError)       tools.address           an address is not one of the web
├── AnswerNotText(ValueError)        tools.not_text          a server sent something else than text
├── SearchUnavailable(RuntimeError)  tools.search            no search service is configured, or it does not answer
├── TaskUnknown(LookupError)         tools.task              the list has no task with this number
├── NoteMissing(LookupError)         tools.note              there is no note with this name
└── ParameterMissing(ValueError)     tools.parameter         an action lacks a parameter
"""

from __future__ import annotations

from collections.abc import Sequence

from sideband import SidebandError
from sideband.suggestions import did_you_mean

_MAX_NAMED = 20


class ToolsError(SidebandError):
    """A call of a tool failed and changed nothing."""

    code = "tools.failed"


class SkillUnknown(ToolsError, LookupError):
    """The agent has no skill of this name."""

    code = "tools.skill"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        more = ", …" if len(known) > _MAX_NAMED else ""
        hint = f"available skills: {', '.join(known[:_MAX_NAMED])}{more}" if known else "there are no skills"
        super().__init__(f"unknown skill `{name}`{did_you_mean(name, known)}", hint=hint)


class SkillFileUnreadable(ToolsError, OSError):
    """A file of a skill does not exist, must not be read, or is not text."""

    code = "tools.skill_file"

    def __init__(self, skill: str, file: str, problem: str) -> None:
        super().__init__(
            f"failed to read `{file}` of skill `{skill}`: {problem}",
            hint="call `skill` without `file`: it lists the files",
        )


class SkillFileName(ToolsError, ValueError):
    """A file of a skill cannot be written or deleted by this name."""

    code = "tools.skill_file_name"

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"cannot use `{file}` as a file of a skill: {problem}", hint="call `skill` to see its files")


class SkillInvalid(ToolsError, ValueError):
    """A skill could not be loaded with this change."""

    code = "tools.skill_invalid"

    def __init__(self, name: str, problems: Sequence[str], hint: str = "") -> None:
        super().__init__(
            f"the skill `{name}` could not be loaded with this change, so nothing was written: {'; '.join(problems)}",
            hint=hint or "correct the content, and write it again",
        )


class OutsidePlaces(ToolsError, PermissionError):
    """A path is in none of the places in which the tools of the agent work."""

    code = "tools.place"

    def __init__(self, path: str, places: Sequence[str]) -> None:
        super().__init__(
            f"`{path}` is outside of the folders in which you may work: {', '.join(places)}",
            hint="ask the user to add its folder to `places` in `[plugins.tools]`",
        )


class PathProtected(ToolsError, PermissionError):
    """A path is in a folder `.git`, whose files decide which programs git runs with the rights of the user."""

    code = "tools.protected"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"`{path}` is in a folder `.git`, whose files may not be changed directly",
            hint="use git with `command`, or ask the user to make this change",
        )


class FileNotReadable(ToolsError, ValueError):
    """A file is neither text nor an image that can be shown."""

    code = "tools.file"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"cannot show `{name}`: {problem}", hint="use a program that understands this kind of file")


class FileNotRead(ToolsError, RuntimeError):
    """A file exists, but this session has not read it, so it must not change it."""

    code = "tools.unread"

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` exists, but was not read before", hint="read it first, then change it")


class FileStale(ToolsError, RuntimeError):
    """A file was changed since this session read it."""

    code = "tools.stale"

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` was changed since it was read", hint="read it again, then change it")


class TextNotFound(ToolsError, LookupError):
    """The text to replace does not occur in a file."""

    code = "tools.no_match"

    def __init__(self, name: str, number: int, remark: str = "") -> None:
        super().__init__(
            f"edit {number}: `old` does not occur in `{name}`{remark}; nothing was changed",
            hint="read the file, and copy the text exactly, without line numbers",
        )


class TextNotUnique(ToolsError, ValueError):
    """The text to replace occurs several times in a file."""

    code = "tools.multiple_matches"

    def __init__(self, name: str, number: int, lines: Sequence[int]) -> None:
        shown = ", ".join(map(str, lines[:_MAX_NAMED])) + (", …" if len(lines) > _MAX_NAMED else "")
        super().__init__(
            f"edit {number}: `old` occurs {len(lines)} times in `{name}`, in the lines {shown}; nothing was changed",
            hint="add lines around it until it is unique, or set `all`",
        )


class TextTooLong(ToolsError, ValueError):
    """The text of a file would be too long after a replacement."""

    code = "tools.text_size"

    def __init__(self, name: str, number: int, size: int, limit: int) -> None:
        super().__init__(
            f"edit {number}: `{name}` would have {size:,} characters, more than the limit of {limit:,}; "
            "nothing was changed",
            hint="replace less, or write several files",
        )


class TextNotEncodable(ToolsError, ValueError):
    """The encoding of a file cannot express a character of its new text."""

    code = "tools.encoding"

    def __init__(self, name: str, encoding: str, character: str) -> None:
        super().__init__(
            f"`{name}` is stored as {encoding}, which has no `{character}`; nothing was changed",
            hint="use other characters, or write the whole file, which is then stored as UTF-8",
        )


class DocumentUnreadable(ToolsError, ValueError):
    """A web page or PDF file is damaged, protected, or takes too much time or memory."""

    code = "tools.document"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"cannot read {name}: {problem}",
            hint="request other pages, or use a program that understands this kind of file",
        )


class AddressInvalid(ToolsError, ValueError):
    """An address is not the URL of a web page."""

    code = "tools.address"

    def __init__(self, url: str) -> None:
        super().__init__(f"`{url[:200]}` is not a complete URL", hint="use a URL such as https://example.org/page")


class AnswerNotText(ToolsError, ValueError):
    """A server sent something else than text."""

    code = "tools.not_text"

    def __init__(self, url: str, kind: str, size: int) -> None:
        super().__init__(
            f"{url[:200]} is not text, but {size:,} bytes of {kind[:100] or 'an unknown type'}",
            hint="look for a page that describes it",
        )


class SearchUnavailable(ToolsError, RuntimeError):
    """No search service is configured, or it does not answer as it should."""

    code = "tools.search"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"cannot search the web: {problem}",
            hint="the user can set the address of a SearXNG server under `[plugins.tools.search]`; "
            "`fetch` reads pages whose address you know",
        )


class TaskUnknown(ToolsError, LookupError):
    """The list of tasks has no task with this number."""

    code = "tools.task"

    def __init__(self, number: int, known: Sequence[int]) -> None:
        numbers = ", ".join(map(str, known)) or "none, it is empty"
        super().__init__(f"the list has no task {number}; nothing was changed", hint=f"numbers in the list: {numbers}")


class NoteMissing(ToolsError, LookupError):
    """There is no note with this name."""

    code = "tools.note"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no note `{name}`", hint="list or search the notes")


class ParameterMissing(ToolsError, ValueError):
    """An action of a tool lacks a parameter that it needs."""

    code = "tools.parameter"

    def __init__(self, action: str, name: str) -> None:
        super().__init__(f"`{action}` needs `{name}`", hint=f"repeat the call with `{name}`")
