"""The session format of pi."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen
from sideband_agent.sessions import EntryTree, SessionHeader, SessionUnreadable

from ._pi_entries import FORMAT, entry_from_pi, entry_to_pi, upgraded

PI_VERSION = 3
"""The version of pi's session format that is written."""


@frozen
class PiFormat:
    """Implements ``sideband_agent.sessions.SessionFormat`` for pi: reads versions 1 to 3, writes version 3."""

    def is_header(self, line: Mapping[str, Any]) -> bool:
        """Return whether this is the first line of a session file of pi."""
        return line.get("type") == "session" and "timestamp" in line

    def read_header(self, line: Mapping[str, Any], session: str) -> SessionHeader:
        """Convert the header of a session."""
        _version(line)
        time, folder = line.get("timestamp"), line.get("cwd")
        return SessionHeader(
            id=session,
            time=time if isinstance(time, str) else "",
            folder=folder if isinstance(folder, str) and folder else None,
            foreign={FORMAT: {**line, "version": PI_VERSION}},
        )

    def read_line(self, header: Mapping[str, Any], line: Mapping[str, Any], number: int) -> tuple[dict[str, Any], str]:
        """Return the record for a line, and the reason if models do not see it, or an empty string."""
        return entry_from_pi(upgraded(_version(header), line, number))

    def write(self, tree: EntryTree) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a session in pi's format."""
        yield _header_to_pi(tree.header)
        yield from (entry_to_pi(entry) for entry in tree.entries)


def _version(header: Mapping[str, Any]) -> int:
    version = header.get("version", 1)
    if version not in range(1, PI_VERSION + 1):
        raise SessionUnreadable(
            f"unsupported version of pi's format: expected 1 to {PI_VERSION}, got {version}",
            hint="upgrade sideband-pi-sessions, or use pi to export the session in an older version",
        )
    return int(version)


def _header_to_pi(header: SessionHeader) -> dict[str, Any]:
    stored = (header.foreign or {}).get(FORMAT)
    if isinstance(stored, dict):
        return stored
    return {
        "type": "session",
        "version": PI_VERSION,
        "id": header.id,
        "timestamp": header.time,
        "cwd": header.folder or "",
        **({"parentSession": header.parent} if header.parent else {}),
    }
