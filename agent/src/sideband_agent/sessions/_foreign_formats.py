"""Formats of other programs: each comes from a package of its own, found by its metadata.

A package names an object that has what ``SessionFormat`` says in the entry-point group
``sideband_agent.session_formats``. The name of the entry point is that of the format. It is imported when a session is
exported in its format, or a file is imported that is not ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, cast

from ._errors import SessionFormatMissing
from ._format import SessionHeader
from ._tree import SessionTree

OUR_FORMAT = "sideband"
_GROUP = "sideband_agent.session_formats"
_PACKAGES = {"pi": "sideband-pi-sessions"}
"""The packages of known formats, to be named where they are not installed."""


class SessionFormat(Protocol):
    """Reads and writes sessions as another program does. A file has a JSON object a line, the header first."""

    def is_header(self, line: Mapping[str, Any]) -> bool:
        """Whether a file that begins so has this format."""

    def read_header(self, line: Mapping[str, Any], session: str) -> SessionHeader:
        """Our header for the session.

        Args:
            line: the first line of the file.
            session: the id that the session has here.

        Raises:
            SessionUnreadable: it has a version of the format that is not known.
        """

    def read_line(self, header: Mapping[str, Any], line: Mapping[str, Any], number: int) -> tuple[dict[str, Any], str]:
        """Our record for a line, and why models do not see what it says; empty if they do.

        A line that can't be expressed becomes a ``ForeignEntry``, which keeps it as it is. Its ids may be damaged: they
        are mended like those in our own files.

        Args:
            header: the first line of the file.
            line: the line.
            number: which one it is, the header not counted, from 1.
        """

    def write(self, tree: SessionTree) -> Iterator[Mapping[str, Any]]:
        """A session as lines, the header first."""


def foreign_format(name: str) -> SessionFormat:
    """The format of that name.

    Raises:
        SessionFormatMissing: no installed package has it, or the one that has it can't be used.
    """
    found = {one.name: one for one in _installed()}
    if name not in found:
        raise SessionFormatMissing(name, [OUR_FORMAT, *sorted(found)], package=_PACKAGES.get(name, ""))
    return _load(found[name])


def format_of_header(line: Mapping[str, Any]) -> SessionFormat | None:
    """The format of a file that begins with this line; ``None`` if no other program's is known that begins so.

    Raises:
        SessionFormatMissing: it is one that no installed package has, or an installed one can't be used.
    """
    if line.get("type") == "session" and "time" in line:
        return None
    for one in _installed():
        format_ = _load(one)
        if format_.is_header(line):
            return format_
    if line.get("type") == "session" and "timestamp" in line:
        raise SessionFormatMissing("pi", package=_PACKAGES["pi"])
    return None


def _installed() -> Iterable[EntryPoint]:
    return sorted(entry_points(group=_GROUP), key=lambda one: one.name)


def _load(found: EntryPoint) -> SessionFormat:
    try:
        return cast("SessionFormat", found.load())
    except Exception as error:
        raise SessionFormatMissing(found.name, problem=f"{type(error).__name__}: {error}") from error
