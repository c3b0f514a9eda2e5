"""Which session a command line means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sideband import UsageError

if TYPE_CHECKING:
    from sideband_agent.sessions import Sessions


async def session_meant(sessions: Sessions, wanted: str) -> str:
    """The session that is meant: `last` is the one that was used last in this folder, or else anywhere."""
    if wanted != "last":
        return wanted
    found = await sessions.latest(Path()) or await sessions.latest()
    if found is None:
        raise UsageError("there is no session yet", hint="begin one with `sideband run` or `sideband chat`")
    return found.id
