"""Sessions that are deleted: which ones, and what ends with them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from .._terminal._questions import user_name

if TYPE_CHECKING:
    from sideband import Host
    from sideband_agent.sessions import SessionInfo, Sessions

_ALL = 1_000_000


async def old_sessions(
    sessions: Sessions,
    *,
    older_than: timedelta | None,
    keep: int | None,
    folder: Path | None,
    named: bool,
) -> list[SessionInfo]:
    """Return the sessions that are to be deleted, the one that was used last first.

    Args:
        sessions: all sessions.
        older_than: only sessions that were not used for as long.
        keep: how many of the sessions that were used last to keep.
        folder: only sessions that were started in this folder.
        named: whether to delete sessions with a name too.
    """
    found = await sessions.list(folder=folder, limit=_ALL)
    before = None if older_than is None else datetime.now(UTC) - older_than
    return [
        info
        for info in found[keep or 0 :]
        if (named or info.name is None) and (before is None or _is_before(info.updated, before))
    ]


async def delete_sessions(host: Host, infos: Iterable[SessionInfo]) -> tuple[list[SessionInfo], dict[str, str]]:
    """Delete sessions with their requests and grants. Those that are in use remain.

    Returns:
        The sessions that were deleted, and why each other was not, by id.
    """
    from sideband_agent.sessions import SessionLocked, SessionNotFound, Sessions

    sessions = Sessions(host.store, host.home)
    deleted: list[SessionInfo] = []
    kept: dict[str, str] = {}
    for info in infos:
        try:
            await sessions.delete(info.id, approvals=host.approvals, by=f"{user_name()} (sideband sessions)")
        except SessionLocked as error:
            kept[info.id] = error.message
        except SessionNotFound:
            continue  # deleted by another process meanwhile
        else:
            deleted.append(info)
    await host.sync()
    return deleted, kept


def _is_before(time: str, moment: datetime) -> bool:
    try:
        return datetime.fromisoformat(time) < moment
    except (ValueError, TypeError):
        return False  # a session of unknown age is kept
