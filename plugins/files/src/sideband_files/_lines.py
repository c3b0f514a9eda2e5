"""The work of `files.lines`: find lines in a file of any size, with bounded memory."""

from __future__ import annotations

import hashlib

from attrs import define, field
from sideband.ops import OpContext
from sideband_confined_files import FileReader

from ._reading import check_cuts
from ._state import Files
from ._text_models import FileLinesParams, FileLinesResult

_BEGINNING = 16


async def read_lines(params: FileLinesParams, ctx: OpContext) -> FileLinesResult:
    """Read some lines of a file."""
    files: Files = ctx.state
    async with files.share(ctx):
        target = await files.find(ctx, params.path, "read")
        async with files.folder(ctx, target).reading(target.path) as reader:
            size = reader.entry.size
            digest = hashlib.sha256() if size <= files.config.max_read_bytes else None
            lines = _Lines(params)
            beginning = b""
            while not (lines.complete and digest is None) and (chunk := await reader.read()):
                beginning = beginning or chunk[:_BEGINNING]
                if digest is not None:
                    digest.update(chunk)
                lines.feed(chunk)
            lines.end()
            await _check(ctx, reader, lines)
    return FileLinesResult(
        path=target.name,
        size=size,
        beginning=beginning,
        content=bytes(lines.content),
        count=lines.count,
        cut=lines.cut,
        next=lines.next,
        sha256=None if digest is None else digest.hexdigest(),
    )


async def _check(ctx: OpContext, reader: FileReader, lines: _Lines) -> None:
    await check_cuts(ctx, reader, lines.start, lines.start + len(lines.content))


@define
class _Lines:
    """The requested lines, found in the chunks of a file.

    Attributes:
        content: the lines so far.
        count: their number.
        start: the offset of the first one in the file.
        cut: whether the last one is incomplete.
        next: the number of the line that follows the last one, once that is known.
        complete: whether further chunks change nothing.
    """

    _params: FileLinesParams
    content: bytearray = field(factory=bytearray)
    count: int = 0
    start: int = 0
    cut: bool = False
    next: int | None = None
    complete: bool = False
    _line: int = 1
    _offset: int = 0
    _partial: int = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk of the file."""
        at = 0
        if not self.complete and self._line < self._params.first:
            at = self._skip(chunk)
        while not self.complete and at < len(chunk):
            if self.count == self._params.count:
                self._finish()
                break
            at = self._take(chunk, at)
        self._offset += len(chunk)

    def end(self) -> None:
        """Note that the file has ended."""
        if not self.complete and self._partial:
            self.count += 1

    def _skip(self, chunk: bytes) -> int:
        """Return where the first line begins in the chunk, or the end of the chunk."""
        wanted = self._params.first - self._line
        found = chunk.count(b"\n")
        if found < wanted:
            self._line += found
            return len(chunk)
        at = 0
        for _ in range(wanted):
            at = chunk.index(b"\n", at) + 1
        self._line = self._params.first
        self.start = self._offset + at
        return at

    def _take(self, chunk: bytes, at: int) -> int:
        """Add a line, or the part of it that is in the chunk. Return where the next one begins."""
        newline = chunk.find(b"\n", at)
        end = len(chunk) if newline < 0 else newline + 1
        room = self._params.max_bytes - len(self.content)
        if end - at > room:
            if self.count:
                del self.content[len(self.content) - self._partial :]
                self._finish()
            else:
                self.content += chunk[at : at + room]
                self.count, self.cut, self.complete = 1, True, True
                self.next = self._params.first + 1
            return end
        self.content += chunk[at:end]
        if newline < 0:
            self._partial += end - at
        else:
            self.count, self._partial = self.count + 1, 0
        return end

    def _finish(self) -> None:
        self.next, self.complete = self._params.first + self.count, True
