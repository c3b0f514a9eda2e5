"""The work of `files.search`: visit the files below a folder, and find the lines that match."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import closing, suppress

from anyio import from_thread, to_thread
from attrs import define, field
from sideband.ops import EgressRefused, OpContext
from sideband.rendering import render
from sideband.tools import emit_tool_progress
from sideband_confined_files import FileError, OpenFolder, normal_path

from ._ignoring import Ignoring
from ._matching import FoundLine, LineSearch
from ._patterns import matches
from ._state import Files
from ._text_models import FileSearchParams, FileSearchResult, LineMatch

_MAX_DEPTH = 64
_LOOK_SECONDS = 0.02
_HIDDEN_SECRET = "[line omitted: it is a part of a known secret]"  # noqa: S105  not a password


async def search_lines(params: FileSearchParams, ctx: OpContext) -> FileSearchResult:
    """Find the lines that match in the files below a folder."""
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read", folder=True, hidden=params.hidden)
        lines = await to_thread.run_sync(LineSearch, params, files.config)
        search = _Search(ctx, params, lines, files.config.max_visited)
        search.until = time.monotonic() + files.config.search_seconds
        await files.folder(ctx, target).visit(target.path, search.begin)
    found = [_result(ctx, path, one) for path, one in search.found]
    return FileSearchResult(
        path=target.name, matches=found, files=search.files, skipped=search.skipped, truncated=search.truncated
    )


def _result(ctx: OpContext, path: str, found: FoundLine) -> LineMatch:
    shown = LineMatch(
        path=path,
        line=found.line,
        text=found.text.decode(errors="replace"),
        before=[one.decode(errors="replace") for one in found.before],
        after=[one.decode(errors="replace") for one in found.after],
    )
    try:
        for before, after in found.cuts:
            ctx.check_cut(before, after)
    except EgressRefused:
        return shown.model_copy(update={"text": _HIDDEN_SECRET, "before": [], "after": []})
    return shown


@define
class _Search:
    """The state of a search.

    Attributes:
        until: the monotonic time at which it ends, in seconds.
        found: the matches so far, each with the path of its file.
        files: the number of files that were searched.
        skipped: the number of files that were not.
        truncated: why it ended before everything was searched.
    """

    _ctx: OpContext
    _params: FileSearchParams
    _lines: LineSearch
    _most_names: int
    until: float = 0.0
    found: list[tuple[str, FoundLine]] = field(factory=list)
    files: int = 0
    skipped: int = 0
    truncated: str | None = None
    _visited: int = 0
    _look_at: float = 0.0
    _names: list[list[str]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._names = [_parts(one) for one in self._params.names]

    def begin(self, folder: OpenFolder) -> None:
        """Search in the folder itself, or in what `below` names. Blocks."""
        parts = normal_path(self._params.below).split("/") if self._params.below not in ("", ".") else []
        self._descend(folder, [], parts, Ignoring())

    def _descend(self, folder: OpenFolder, path: list[str], rest: Sequence[str], ignoring: Ignoring) -> None:
        """Go down to what was named, whether it is ignored or not, and search there."""
        inner = ignoring if self._params.ignored else ignoring.entering(folder, "/".join(path))
        if not rest:
            self._folder(folder, path, inner)
        elif len(rest) == 1 and not folder.is_folder(rest[0]):
            with folder.file(rest[0]) as (descriptor, status):
                self._file(descriptor, status.st_size, [*path, rest[0]])
        else:
            own = [*path, rest[0]]
            if inner.excludes("/".join(own), is_folder=True):
                inner = Ignoring()
            with folder.folder(rest[0]) as below:
                self._descend(below, own, rest[1:], inner)

    def _folder(self, folder: OpenFolder, path: list[str], ignoring: Ignoring) -> None:
        files, folders = folder.names(hidden=self._params.hidden, limit=self._most_names)
        self._visited += len(files) + len(folders)
        if self._visited >= self._most_names:
            self.truncated = "names"
        for name in files:
            own = [*path, name]
            if self._is_over():
                return
            if self._is_wanted(own) and not (ignoring.rules and ignoring.excludes("/".join(own), is_folder=False)):
                try:
                    descriptor, status = folder.open_listed(name)
                except FileError:  # it cannot be read, or was replaced after it was listed
                    self.skipped += 1
                    continue
                try:
                    self._file(descriptor, status.st_size, own)
                finally:
                    os.close(descriptor)
        for name in folders:
            own = [*path, name]
            if self._is_over() or len(own) > _MAX_DEPTH:
                return
            if not self._params.ignored and (name == ".git" or ignoring.excludes("/".join(own), is_folder=True)):
                continue
            with suppress(FileError), folder.folder(name) as below:
                inner = ignoring if self._params.ignored else ignoring.entering(below, "/".join(own))
                self._folder(below, own, inner)

    def _file(self, descriptor: int, size: int, path: list[str]) -> None:
        found = self._lines.matches(descriptor, size, self._is_over)
        if found is None:
            self.skipped += 1
            return
        self.files += 1
        if isinstance(found, tuple):
            return
        with closing(found):
            for one in found:
                if len(self.found) == self._params.limit:
                    self.truncated = "limit"
                    return
                self._add("/".join(path), one)
                if self._is_over():
                    return

    def _add(self, path: str, one: FoundLine) -> None:
        self.found.append((path, one))
        shown = _result(self._ctx, path, one)
        emit_tool_progress(f"{render(path)}:{one.line}: {shown.text}\n", "matches")

    def _is_wanted(self, path: list[str]) -> bool:
        return not self._names or any(matches(path, one) for one in self._names)

    def _is_over(self) -> bool:
        now = time.monotonic()
        if now > self._look_at:  # looking at it takes as long as opening a file
            self._look_at = now + _LOOK_SECONDS
            from_thread.check_cancelled()
        if self.truncated is None and now > self.until:
            self.truncated = "time"
        return self.truncated is not None


def _parts(pattern: str) -> list[str]:
    """Return the components of a pattern. One without a slash matches in every folder."""
    parts = [part for part in pattern.split("/") if part]
    return parts if "/" in pattern.strip("/") else ["**", *parts]
