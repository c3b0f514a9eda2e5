"""Lookup of the session that a command line refers to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sideband import UsageError

if TYPE_CHECKING:
    from sideband_agent.sessions import Sessions


LAST = "last"
"""The word for the session that was used last."""


async def resolve_session(sessions: Sessions, name: str) -> str:
    """Return the id for `last`, the session last used in this folder or else anywhere; other values unchanged."""
    if name != LAST:
        return name
    found = await sessions.latest(Path()) or await sessions.latest()
    if found is None:
        raise UsageError("no session exists yet", hint="start one with `sideband run` or `sideband chat`")
    return found.id
