"""Find the lines that match in a file of any size, with bounded memory and in linear time. Blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from typing import Any

from anyio import from_thread
from attrs import define, field, frozen

from ._config import Config
from ._errors import FilesPatternInvalid
from ._ripgrep import Candidates, Ripgrep, find_ripgrep
from ._text_models import FileSearchParams

_CHUNK = 1024 * 1024
_LONGEST_LINE = 4 * _CHUNK
_SHOWN = 500
_SURROUNDINGS = 16 * 1024


@frozen
class FoundLine:
    """A line that matches, as bytes.

    Attributes:
        line: its number.
        text: the line without its end, shortened around the match.
        before: the lines before it.
        after: the lines after it.
        cuts: what surrounds the places at which the text was cut out of the file, to find a divided secret.
    """

    line: int
    text: bytes
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    cuts: tuple[tuple[bytes, bytes], ...]


@define
class LineSearch:
    """A compiled pattern.

    Args:
        params: the parameters of the search.
        config: the settings, which name ripgrep.

    Raises:
        FilesPatternInvalid: if the pattern is not valid.
    """

    params: FileSearchParams
    config: Config
    _find: Callable[[bytes, int], Any] = field(init=False)
    _ripgrep: Ripgrep | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415  at the first search: the import takes 30 ms

        literal, ignore_case = self.params.literal, self.params.ignore_case
        options = re2.Options()
        options.never_nl, options.log_errors = True, False
        options.literal, options.case_sensitive = literal, not ignore_case
        pattern = self.params.pattern if literal else f"(?m){self.params.pattern}"
        try:
            self._find = re2.compile(pattern.encode(), options).search
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise FilesPatternInvalid(self.params.pattern, text) from None
        program = find_ripgrep(self.config.ripgrep)
        self._ripgrep = Ripgrep.of(program, self.params.pattern, literal=literal, ignore_case=ignore_case)

    def matches(
        self, descriptor: int, size: int, is_over: Callable[[], bool]
    ) -> Generator[FoundLine, None, None] | tuple[()] | None:
        """Return the lines that match in an open file, or ``None`` if the file is not text.

        Args:
            descriptor: the descriptor of the file.
            size: its size, which it may have exceeded since.
            is_over: returns whether to end before the end of the file. Called after each part of it.
        """
        # A buffer that is larger than the file takes longer than reading most files.
        first = os.pread(descriptor, min(_CHUNK, size + 1), 0)
        if first.find(b"\0", 0, 8_192) >= 0:
            return None
        if self._ripgrep is not None and size >= self.config.ripgrep_bytes:
            return self._with_ripgrep(self._ripgrep, descriptor, first, is_over)
        is_whole = len(first) == size < _CHUNK
        if is_whole and self._find(first, 0) is None:  # as in most files
            return ()
        return self._matches(descriptor, first, is_over, None, is_whole=is_whole)

    def _with_ripgrep(
        self, ripgrep: Ripgrep, descriptor: int, first: bytes, is_over: Callable[[], bool]
    ) -> Generator[FoundLine, None, None]:
        with ripgrep.candidates(descriptor, is_over) as candidates:
            yield from self._matches(descriptor, first, is_over, candidates, is_whole=False)

    def _matches(
        self,
        descriptor: int,
        data: bytes,
        is_over: Callable[[], bool],
        candidates: Candidates | None,
        *,
        is_whole: bool,
    ) -> Generator[FoundLine, None, None]:
        at, lines = 0, _LineNumbers(descriptor)
        while data:
            end = len(data) if is_whole else data.rfind(b"\n") + 1
            if not end and len(data) < _LONGEST_LINE:
                data, is_whole = _more(descriptor, at, 2 * len(data))
                continue
            chunk = data[: end or len(data)]
            yield from self._in_chunk(descriptor, chunk, at, lines)
            if is_whole or is_over():
                return
            at += len(chunk)
            following = candidates.next(at) if candidates is not None and end else None
            if following is not None:
                at = lines.start(*following)
            elif candidates is not None and candidates.is_complete:
                return
            else:  # not known, or not the beginning of a line
                candidates = None
            data, is_whole = _more(descriptor, at, _CHUNK)

    def _in_chunk(self, descriptor: int, chunk: bytes, offset: int, lines: _LineNumbers) -> Iterator[FoundLine]:
        at = 0
        while at < len(chunk) and (found := self._find(chunk, at)) is not None:
            start = chunk.rfind(b"\n", 0, found.start()) + 1
            end = chunk.find(b"\n", max(found.start(), start))
            end = len(chunk) if end < 0 else end
            if start >= len(chunk):  # an empty match after the last line
                return
            line = lines.line_at(offset, chunk, start)
            yield self._match(descriptor, line, offset + start, offset + found.start(), offset + end)
            at = end + 1

    def _match(self, descriptor: int, line: int, start: int, at: int, end: int) -> FoundLine:
        """Return a line, given the offsets of its beginning, of the match and of its end."""
        first = max(start, min(at - _SHOWN // 2, end - _SHOWN))
        last = min(end, first + _SHOWN)
        begin = max(0, first - _SURROUNDINGS)
        around = os.pread(descriptor, last + _SURROUNDINGS - begin, begin)
        cuts = tuple(
            (around[max(0, cut - _SURROUNDINGS) : cut], around[cut : cut + _SURROUNDINGS])
            for cut in (first - begin, last - begin)
        )
        text = around[first - begin : last - begin].rstrip(b"\r")
        context = self.params.context
        before, after = (_before(descriptor, start), _after(descriptor, end + 1)) if context else ((), ())
        return FoundLine(
            line, text, tuple(map(_shortened, before[-context:])), tuple(map(_shortened, after[:context])), cuts
        )


@define
class _LineNumbers:
    """Counts lines as far as matches need their numbers: counting takes longer than searching."""

    _descriptor: int
    _line: int = 1
    _at: int = 0

    def start(self, offset: int, line: int) -> int:
        """Count from a line on, and return its offset."""
        self._line, self._at = line, offset
        return offset

    def line_at(self, offset: int, chunk: bytes, start: int) -> int:
        """Return the number of the line at ``start`` of a chunk, which itself is at ``offset`` of the file."""
        while self._at < offset and (data := os.pread(self._descriptor, min(_CHUNK, offset - self._at), self._at)):
            from_thread.check_cancelled()
            self._line += data.count(b"\n")
            self._at += len(data)
        self._line += chunk.count(b"\n", max(0, self._at - offset), start)
        self._at = offset + start
        return self._line


def _before(descriptor: int, start: int) -> list[bytes]:
    begin = max(0, start - _SURROUNDINGS)
    lines = os.pread(descriptor, start - begin, begin).split(b"\n")[:-1]
    return lines[1:] if begin else lines


def _after(descriptor: int, start: int) -> list[bytes]:
    data = os.pread(descriptor, _SURROUNDINGS, start)
    *lines, last = data.split(b"\n")
    is_shown = last and (len(data) < _SURROUNDINGS or len(last) >= _SHOWN)
    return [*lines, last] if is_shown else lines


def _more(descriptor: int, at: int, size: int) -> tuple[bytes, bool]:
    """Return a part of a file, and whether it ends there."""
    data = os.pread(descriptor, size, at)
    while len(data) < size:
        if not (more := os.pread(descriptor, size - len(data), at + len(data))):
            return data, True
        data += more
    return data, False


def _shortened(line: bytes) -> bytes:
    return line[:_SHOWN].rstrip(b"\r")
