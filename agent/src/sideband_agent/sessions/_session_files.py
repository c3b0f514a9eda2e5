"""Sessions as files: one JSON object per line, the header first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from ._copies import Copy
from ._errors import SessionUnreadable
from ._foreign_formats import OUR_FORMAT, SessionFormat, foreign_format, format_of_header
from ._format import EntryReader, SessionHeader, header_of, is_session_id, new_id, repaired
from ._jsonl import Line, dump_line, parse_lines
from ._tree import EntryTree


def copy_of_lines(lines: Iterable[bytes | str]) -> Copy:
    """Read the session in a file, in our format or an installed one.

    Raises:
        SessionUnreadable: if the file is not a session.
        SessionFormatMissing: if the file has another program's format that is not installed.
    """
    parsed = parse_lines(lines)
    first = next(parsed, None)
    if first is None:
        raise SessionUnreadable("the file is empty")
    if first.value is None:
        raise SessionUnreadable(f"invalid header in the first line: {first.problem}")
    notices: list[str] = []
    found = _intact(parsed, notices)
    foreign = format_of_header(first.value)
    if foreign is not None:
        header = foreign.read_header(first.value, new_id())
        return _copy(header, _converted(foreign, first.value, found, notices), notices)
    return _copy(_our_header(first.value), ((line.value, line.place) for line in found), notices)


def export_lines(tree: EntryTree, records: Iterable[Mapping[str, Any]], format_: str) -> Iterator[str]:
    """Serialize a session as lines, including newlines.

    Args:
        tree: the session.
        records: its entries as they are stored.
        format_: ``sideband``, or the name of an installed format.

    Raises:
        SessionFormatMissing: if the format is not installed.
    """
    if format_ == OUR_FORMAT:
        return (dump_line(line) for line in (tree.header.exported(), *records))
    return (dump_line(line) for line in foreign_format(format_).write(tree))


def _copy(header: SessionHeader, found: Iterable[tuple[Mapping[str, Any], str]], notices: list[str]) -> Copy:
    reader = EntryReader(notices=notices)
    records = []
    for record, where in found:
        entry = reader.take(record, where)
        if entry is not None:
            records.append(repaired(record, entry))
    return Copy(header.model_copy(update={"copied": len(records)}), records, tuple(notices))


@frozen
class _Intact:
    """A valid line."""

    number: int
    value: dict[str, Any]

    @property
    def place(self) -> str:
        """The line as shown in notices."""
        return f"line {self.number}"


def _intact(parsed: Iterable[Line], notices: list[str]) -> Iterator[_Intact]:
    for line in parsed:
        if line.value is None:
            notices.append(f"line {line.number} was skipped: {line.problem}")
        else:
            if line.problem:
                notices.append(f"line {line.number}: {line.problem}")
            yield _Intact(line.number, line.value)


def _converted(
    foreign: SessionFormat, header: Mapping[str, Any], found: Iterable[_Intact], notices: list[str]
) -> Iterator[tuple[dict[str, Any], str]]:
    for number, line in enumerate(found, start=1):
        record, problem = foreign.read_line(header, line.value, number)
        if problem:
            notices.append(f"{line.place} is stored but hidden from models: {problem}")
        yield record, line.place


def _our_header(line: Mapping[str, Any]) -> SessionHeader:
    if line.get("type") != "session" or not isinstance(line.get("version"), int):
        raise SessionUnreadable("the first line is not the header of a session")
    usable = dict(line)
    if not is_session_id(line.get("id")):
        usable["id"] = new_id()
    header = header_of(usable)
    if header is None:
        raise SessionUnreadable("the header is damaged")
    return header
