"""``sideband sessions rename|delete|prune``: change and delete sessions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sideband import UsageError
from sideband.command_line import notice, print_data

from .._arguments._types import count, duration
from .._dialogs._questions import confirmed, has_terminal, say_table
from .._errors import DeletionUnconfirmed
from .._host._opened import with_host
from ._lookup import LAST, resolve_session
from ._removal import delete_sessions, old_sessions
from ._session_text import info_data, sessions_table

if TYPE_CHECKING:
    from sideband import Host
    from sideband_agent.sessions import SessionInfo


def configure_rename(parser: ArgumentParser) -> None:
    """Add the arguments of ``sessions rename``."""
    parser.add_argument("session", metavar="SESSION", help="an id, an id prefix, a name, or `last`")
    parser.add_argument("name", metavar="NAME", help="the new name; an empty one removes the name")


def configure_delete(parser: ArgumentParser) -> None:
    """Add the arguments of ``sessions delete``."""
    parser.add_argument("sessions", metavar="SESSION", nargs="+", help="an id, an id prefix, a name, or `last`")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def configure_prune(parser: ArgumentParser) -> None:
    """Add the arguments of ``sessions prune``."""
    parser.add_argument(
        "--older-than", type=duration, metavar="AGE", help="delete sessions that were not used for this long, as in 30d"
    )
    parser.add_argument("--keep", type=count, metavar="NUMBER", help="keep as many of the sessions that were used last")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="only sessions that were started in this folder")
    parser.add_argument("--named", action="store_true", help="also delete sessions that have a name")
    parser.add_argument("--yes", action="store_true", help="delete them without asking")


def rename(arguments: Namespace) -> None:
    """Rename a session.

    Raises:
        UsageError: if another session has the name.
        SessionLocked: if the session is in use.
    """
    name = arguments.name.strip()
    if name == LAST:
        raise UsageError(f"`{LAST}` cannot be the name of a session", hint="it means the session that was used last")

    async def do(host: Host) -> SessionInfo:
        from sideband_agent.sessions import Sessions

        sessions = Sessions(host.store, host.home)
        found = await resolve_session(sessions, arguments.session)
        async with await sessions.open(found) as session:
            others = await sessions.list(limit=1_000_000)
            same = next((one.id for one in others if name and one.name == name and one.id != session.id), None)
            if same is not None:
                raise UsageError(f"the session `{same}` has the name `{name}`", hint="choose another name")
            await session.rename(name or None)
        return session.info

    info = with_host(arguments, do)
    text = f"session {info.id} is now `{name}`" if name else f"session {info.id} has no name any more"
    print_data(arguments, info_data(info), text)


def delete(arguments: Namespace) -> None:
    """Delete sessions, after a confirmation.

    Raises:
        SessionLocked: if one of them is in use. No session is deleted then.
        DeletionUnconfirmed: if the user did not confirm it.
    """

    async def find(host: Host) -> list[SessionInfo]:
        from sideband_agent.sessions import Sessions

        sessions = Sessions(host.store, host.home)
        found = {}
        for name in arguments.sessions:
            async with await sessions.open(await resolve_session(sessions, name)) as session:
                found[session.id] = session.info
        return list(found.values())

    _delete(arguments, with_host(arguments, find))


def prune(arguments: Namespace) -> None:
    """Delete old sessions. Without a terminal and ``--yes``, only list them.

    Raises:
        UsageError: if neither an age nor a number is given.
        DeletionUnconfirmed: if the user did not confirm it.
    """
    if arguments.older_than is None and arguments.keep is None:
        raise UsageError("it is not said which sessions are old", hint="add --older-than 30d, --keep 50, or both")

    async def find(host: Host) -> list[SessionInfo]:
        from sideband_agent.sessions import Sessions

        return await old_sessions(
            Sessions(host.store, host.home),
            older_than=arguments.older_than,
            keep=arguments.keep,
            folder=arguments.folder,
            named=arguments.named,
        )

    found = with_host(arguments, find)
    if found and not arguments.yes and not has_terminal():
        notice("notice: nothing was deleted; add --yes to delete these sessions")
        data = {"deleted": [], "found": [info_data(one) for one in found], "kept": {}}
        print_data(arguments, data, sessions_table(found))
        return
    _delete(arguments, found)


def _delete(arguments: Namespace, found: Sequence[SessionInfo]) -> None:
    if found and not arguments.yes:
        if not has_terminal():
            raise DeletionUnconfirmed(asked=False)
        say_table(lambda width: sessions_table(found, width=width))
        if not confirmed(f"Delete {_counted(found)}? This cannot be undone.", default=False):
            raise DeletionUnconfirmed(asked=True)
    deleted, kept = with_host(arguments, lambda host: delete_sessions(host, found)) if found else ([], {})
    for reason in kept.values():
        notice(f"notice: {reason}")
    data = {"deleted": [info_data(one) for one in deleted], "found": [info_data(one) for one in found], "kept": kept}
    print_data(arguments, data, f"deleted {_counted(deleted)}")


def _counted(infos: Sequence[SessionInfo]) -> str:
    return f"{len(infos)} {'session' if len(infos) == 1 else 'sessions'}"
