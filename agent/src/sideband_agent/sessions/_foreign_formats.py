"""Session formats of other programs, provided by separate packages and found by their metadata.

A package registers an object that implements ``SessionFormat`` in the entry-point group
``sideband_agent.session_formats``, under the name of the format. It is imported when a session is exported in its
format, or when a file is imported that does not have our format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, cast

from ._errors import SessionFormatMissing
from ._format import SessionHeader
from ._tree import EntryTree

OUR_FORMAT = "sideband"
_GROUP = "sideband_agent.session_formats"
_PACKAGES = {"pi": "sideband-pi-sessions"}
"""The packages of known formats, for the hint if they are not installed."""


class SessionFormat(Protocol):
    """A reader and writer of another program's session format: one JSON object per line, the header first."""

    def is_header(self, line: Mapping[str, Any]) -> bool:
        """Return whether a file with this first line has this format."""

    def read_header(self, line: Mapping[str, Any], session: str) -> SessionHeader:
        """Convert the header of a session.

        Args:
            line: the first line of the file.
            session: the id of the imported session.

        Raises:
            SessionUnreadable: if the version of the format is not supported.
        """

    def read_line(self, header: Mapping[str, Any], line: Mapping[str, Any], number: int) -> tuple[dict[str, Any], str]:
        """Convert a line to a record. Also return why models do not see the line, or an empty string if they do.

        A line that cannot be expressed becomes a ``ForeignEntry``, which stores it unchanged. Its ids may be damaged:
        they are repaired like those in our own files.

        Args:
            header: the first line of the file.
            line: the line.
            number: the number of the line, from 1, not counting the header.
        """

    def write(self, tree: EntryTree) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a session, the header first."""


def foreign_format(name: str) -> SessionFormat:
    """Return the format with this name.

    Raises:
        SessionFormatMissing: if no installed package provides it, or the package cannot be loaded.
    """
    found = {one.name: one for one in _installed()}
    if name not in found:
        raise SessionFormatMissing(name, [OUR_FORMAT, *sorted(found)], package=_PACKAGES.get(name, ""))
    return _load(found[name])


def format_of_header(line: Mapping[str, Any]) -> SessionFormat | None:
    """Return the foreign format of a file with this first line, or ``None`` if it is not a known foreign format.

    Raises:
        SessionFormatMissing: if the format is known but not installed, or an installed format cannot be loaded.
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
