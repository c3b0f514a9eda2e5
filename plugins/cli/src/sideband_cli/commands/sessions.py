"""``sideband sessions``: list, show, copy, export, import, rename and delete stored conversations."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, make_host, notice, print_data, print_json, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._agent._availability import require_agent
from .._arguments._types import count
from .._sessions._commands import configure_delete, configure_prune, configure_rename, delete, prune, rename
from .._sessions._lookup import resolve_session
from .._sessions._session_text import info_data, sessions_table, show_session, tree_data
from .._sessions._tree_text import tree_lines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from sideband_agent.sessions import Sessions

__all__ = ["sideband_commands"]

_MAX_NOTICES = 20


def sideband_commands() -> Command:
    """Register the command."""
    return Command("sessions", "list, show, copy, export, rename and delete conversations", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list sessions, most recently used first")
    listing.add_argument(
        "--folder", type=Path, metavar="DIR", help="list only sessions that were started in this folder"
    )
    listing.add_argument("--text", help="list only sessions whose name or messages contain this text")
    listing.add_argument("--limit", type=count, default=50, help="the maximum number of sessions (default: 50)")
    show = actions.add_parser("show", help="show the messages of the current branch, or up to an entry")
    show.add_argument("--at", metavar="ENTRY", help="the last entry: an id, an id prefix or a label")
    tree = actions.add_parser("tree", help="show all branches, with labels and the current position")
    fork = actions.add_parser("fork", help="copy a session up to an entry into a new session")
    where = fork.add_mutually_exclusive_group()
    where.add_argument("--at", metavar="ENTRY", help="copy up to this entry (default: the current position)")
    where.add_argument("--before", metavar="ENTRY", help="copy up to the entry before this one")
    fork.add_argument("--name", help="the name of the new session")
    export = actions.add_parser("export", help="write a session as JSON Lines")
    export.add_argument(
        "--format",
        default="sideband",
        metavar="NAME",
        help="the format (default: sideband); `pi` requires sideband-pi-sessions",
    )
    export.add_argument("--output", type=Path, metavar="FILE", help="write to this file instead of standard output")
    export.add_argument("--force", action="store_true", help="overwrite an existing file")
    for action in (show, tree, fork, export):
        action.add_argument("session", metavar="SESSION", help="an id, an id prefix, a name, or `last`")
    import_ = actions.add_parser("import", help="import a session file in sideband's or another installed format")
    import_.add_argument("file", metavar="FILE", help="the file; - for standard input")
    import_.add_argument("--name", help="the name of the imported session")
    renaming = actions.add_parser("rename", help="give a session a name, or another one")
    configure_rename(renaming)
    deletion = actions.add_parser("delete", help="delete sessions, with the requests and grants that are for them only")
    configure_delete(deletion)
    pruning = actions.add_parser("prune", help="delete old sessions; without a terminal and --yes, list them")
    configure_prune(pruning)
    for action in (listing, show, tree, fork, export, import_, renaming, deletion, pruning):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    require_agent("sessions")
    actions = {
        "list": _list,
        "show": _show,
        "tree": _tree,
        "fork": _fork,
        "export": _export,
        "import": _import,
        "rename": rename,
        "delete": delete,
        "prune": prune,
    }
    actions[arguments.action](arguments)
    return ExitCode.SUCCESS


def _ask(arguments: Namespace, question: Callable[[Sessions], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        from sideband_agent.sessions import Sessions

        async with make_host(arguments) as host:
            sessions = Sessions(host.store, host.home)
            if hasattr(arguments, "session"):
                arguments.session = await resolve_session(sessions, arguments.session)
            return await question(sessions)

    return run_async(main)


def _list(arguments: Namespace) -> None:
    options = {name: getattr(arguments, name) for name in ("folder", "text", "limit")}
    found = _ask(arguments, lambda sessions: sessions.list(**options))
    print_data(arguments, [info_data(info) for info in found], sessions_table(found))


def _show(arguments: Namespace) -> None:
    tree = _ask(arguments, lambda sessions: sessions.read(arguments.session))
    _print_notices(tree.notices)
    at = tree.find(arguments.at) if arguments.at else None
    print_data(arguments, tree_data(tree, tree.path(at)), show_session(tree, tree.path(at)))


def _tree(arguments: Namespace) -> None:
    tree = _ask(arguments, lambda sessions: sessions.read(arguments.session))
    _print_notices(tree.notices)
    text = "\n".join(tree_lines(tree)) or "no messages yet"
    print_data(arguments, tree_data(tree, tree.entries), text)


def _fork(arguments: Namespace) -> None:
    async def fork(sessions: Sessions) -> Any:
        wanted = arguments.before or arguments.at
        entry = (await sessions.read(arguments.session)).find(wanted) if wanted else None
        position: Any = "before" if arguments.before else "at"
        async with await sessions.fork(arguments.session, entry, position=position) as session:
            if arguments.name:
                await session.rename(arguments.name)
        return session.info

    info = _ask(arguments, fork)
    print_data(arguments, info_data(info), f"session {info.id}, a copy of {info.parent}")


def _export(arguments: Namespace) -> None:
    lines = _ask(arguments, lambda sessions: sessions.export(arguments.session, format=arguments.format))
    if arguments.output is None:
        _print_lines(arguments, lines)
        return
    from sideband_agent.sessions import write_file

    write_file(arguments.output, lines, overwrite=arguments.force)
    print_data(arguments, {"output": str(arguments.output)}, f"written to {arguments.output}")


def _print_lines(arguments: Namespace, lines: Iterable[str]) -> None:
    if arguments.json:
        print_json([json.loads(line) for line in lines])
        return
    for line in lines:
        # Programs get the exact bytes; a terminal gets ASCII, so that no control character reaches it.
        text = line if not sys.stdout.isatty() else json.dumps(json.loads(line)) + "\n"
        sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def _import(arguments: Namespace) -> None:
    from sideband_agent.sessions import read_file

    lines = sys.stdin.buffer if arguments.file == "-" else read_file(Path(arguments.file))
    info, notices = _ask(arguments, lambda sessions: sessions.import_(lines, name=arguments.name))
    _print_notices(notices)
    print_data(arguments, {**info_data(info), "notices": list(notices)}, f"session {info.id}, {info.entries} entries")


def _print_notices(notices: Iterable[str]) -> None:
    texts = list(notices)
    for text in texts[:_MAX_NOTICES]:
        notice(f"notice: {text}")
    if len(texts) > _MAX_NOTICES:
        notice(f"notice: {len(texts) - _MAX_NOTICES} more")
