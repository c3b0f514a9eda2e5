"""What a tool call changes in a file, as the two contents that clients compare."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from acp.schema import FileEditToolCallContent
from sideband.state import open_beneath

_LARGEST = 1 << 20
"""The maximum size of a file in bytes whose change is shown."""

_CUT = "…"
"""The end of a value that a request for approval shows only in part."""


class _NotShown(Exception):
    """The present content of a file cannot be shown."""


class Changes(NamedTuple):
    """Finds out what tool calls change.

    Args:
        folder: the working directory. The content of files elsewhere is not read.
        redact: removes secrets from a text. A content with secrets is not shown.
    """

    folder: Path
    redact: Callable[[str], str]

    def of_call(self, tool: str, arguments: Mapping[str, Any]) -> list[FileEditToolCallContent]:
        """Return the change that a call is about to make; nothing if it cannot be shown in full."""
        path = arguments.get("path")
        if tool not in ("write", "edit") or not isinstance(path, str):
            return []
        try:
            old = self._content(path)
            new = arguments.get("content") if tool == "write" else _edited(old, arguments.get("edits"))
        except _NotShown:
            return []
        return self._shown(path, old, new)

    def of_effect(self, op: str, params: Mapping[str, Any]) -> list[FileEditToolCallContent]:
        """Return the change that an effect would make; nothing if it cannot be shown in full."""
        path, new = params.get("path"), params.get("content")
        if op != "files.write" or not isinstance(path, str) or params.get("append"):
            return []
        if not isinstance(new, str) or new.endswith(_CUT):
            return []
        try:
            return self._shown(path, self._content(path), new)
        except _NotShown:
            return []

    def of_past_call(self, tool: str, arguments: Mapping[str, Any]) -> list[FileEditToolCallContent]:
        """Return what a call of `edit` has replaced. What a file contained before is not known any more."""
        path, edits = arguments.get("path"), arguments.get("edits")
        if tool != "edit" or not isinstance(path, str) or not isinstance(edits, list | tuple):
            return []
        pairs = [(one.get("old"), one.get("new")) for one in edits if isinstance(one, Mapping)]
        return [shown for old, new in pairs if isinstance(old, str) for shown in self._shown(path, old, new)]

    def absolute(self, path: str) -> str:
        """Return a path as clients need it."""
        return os.path.normpath(self.folder / path)

    def _shown(self, path: str, old: str | None, new: Any) -> list[FileEditToolCallContent]:
        if not isinstance(new, str) or len(new) > _LARGEST:
            return []
        if any(self.redact(text) != text for text in (old or "", new)):
            return []
        return [FileEditToolCallContent(type="diff", path=self.absolute(path), old_text=old, new_text=new)]

    def _content(self, path: str) -> str | None:
        """Return the content of a file below the working directory, or ``None`` if it does not exist.

        Raises:
            _NotShown: if it cannot be shown.
        """
        real = Path(os.path.realpath(self.folder))
        found = Path(self.absolute(path))
        base = next((one for one in (self.folder, real) if found.is_relative_to(one)), None)
        if base is None:
            raise _NotShown
        try:
            descriptor = open_beneath(real, found.relative_to(base).parts)
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise _NotShown from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _NotShown
            with os.fdopen(descriptor, "rb", closefd=False) as opened:
                raw = opened.read(_LARGEST + 1)
        finally:
            os.close(descriptor)
        if len(raw) > _LARGEST or b"\0" in raw:
            raise _NotShown
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise _NotShown from None


def _edited(old: str | None, edits: Any) -> str:
    """Return a content after replacements.

    Raises:
        _NotShown: if they do not fit, so that the call will fail.
    """
    if old is None or not isinstance(edits, list | tuple):
        raise _NotShown
    text = old
    for one in edits:
        before, after = one.get("old"), one.get("new")
        if not isinstance(before, str) or not isinstance(after, str) or not before or before not in text:
            raise _NotShown
        text = text.replace(before, after) if one.get("all") else text.replace(before, after, 1)
    return text
