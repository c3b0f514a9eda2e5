"""``sideband approvals list|show|approve|deny``: answer stored requests for approval."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, notice, print_data
from sideband.commands import Command
from sideband.exit_codes import ExitCode
from sideband.rendering import render

from .._errors import ApprovalUnconfirmed
from .._host._opened import with_host
from .._terminal._columns import terminal_width
from .._terminal._progressbar import Progressbar
from .._terminal._questions import ask_at_terminal, user_name
from .._terminal._request_text import offer_lines, question_rows, request_lines
from .._terminal._tables import format_table

if TYPE_CHECKING:
    from sideband import Host
    from sideband.approvals import ApprovalRequest, ApprovalScope, StoredApproval

__all__ = ["sideband_commands"]

_LEAST_CHARACTERS = 4


def sideband_commands() -> Command:
    """Register the command."""
    return Command("approvals", "list and answer requests for approval", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser(
        "list", help="list the requests that are open, that were approved and not used yet, or that gave a grant"
    )
    listing.add_argument(
        "--all",
        action="store_true",
        help="also list those that were denied, whose answer was used, or whose approval has expired",
    )
    show = actions.add_parser("show", help="show exactly what is to be approved, and the answer")
    approve = actions.add_parser("approve", help="approve a request, once unless an option says otherwise")
    scope = approve.add_mutually_exclusive_group()
    scope.add_argument("--session", action="store_true", help="give the grant that `show` lists for the session")
    scope.add_argument("--always", action="store_true", help="give the grant that `show` lists for all sessions")
    approve.add_argument("--yes", action="store_true", help="do not ask to confirm a grant")
    deny = actions.add_parser("deny", help="deny a request, or revoke the grant that an answer to it gave")
    for action in (approve, deny):
        action.add_argument("--reason", default="", help="the reason, for the record; the model sees that of a denial")
    for action in (show, approve, deny):
        help_text = "the id of the request, or at least its first four characters"
        action.add_argument("request", metavar="ID", help=help_text)
    for action in (listing, show, approve, deny):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    actions = {"list": _list, "show": _show, "approve": _approve, "deny": _deny}
    actions[arguments.action](arguments)
    return ExitCode.SUCCESS


def _list(arguments: Namespace) -> None:
    found = with_host(arguments, lambda host: host.approvals.list())
    shown = [one for one in found if arguments.all or one.state not in {"used", "expired", "denied"}]
    rows = [
        [one.request.id, one.state, _time(one.request.asked), one.request.subject, one.request.question]
        for one in shown
    ]
    table = format_table(["id", "state", "asked", "subject", "question"], rows) if rows else "no open requests"
    print_data(arguments, [_data(one) for one in shown], table)


def _show(arguments: Namespace) -> None:
    stored = with_host(arguments, lambda host: _find(host, arguments.request))
    print_data(arguments, _data(stored), "\n".join(_described(stored)))


def _approve(arguments: Namespace) -> None:
    scope: ApprovalScope = "session" if arguments.session else "always" if arguments.always else "once"

    async def do(host: Host) -> StoredApproval:
        stored = await _find(host, arguments.request)
        if scope in stored.request.grants and not arguments.yes:
            await _confirm(stored.request, scope)
        return await _answer(host, stored, "allow", scope, arguments.reason)

    stored = with_host(arguments, do)
    print_data(arguments, _data(stored), "\n".join(_described(stored)))


def _deny(arguments: Namespace) -> None:
    async def do(host: Host) -> tuple[StoredApproval, bool]:
        stored = await _find(host, arguments.request)
        denied = await _answer(host, stored, "deny", "once", arguments.reason)
        return denied, stored.state == "granted"

    denied, revokes = with_host(arguments, do)
    lines = [*_described(denied), *(["the grant that the earlier answer gave is revoked"] if revokes else ())]
    print_data(arguments, _data(denied), "\n".join(lines))


async def _find(host: Host, beginning: str) -> StoredApproval:
    """Return the request with this id, or the only one whose id has this beginning of at least four characters."""
    is_enough = len(beginning) >= _LEAST_CHARACTERS
    found = [one for one in await host.approvals.list() if is_enough and one.request.id.startswith(beginning)]
    return found[0] if len(found) == 1 else await host.approvals.get(beginning)


async def _answer(
    host: Host, stored: StoredApproval, verdict: Any, scope: ApprovalScope, reason: str
) -> StoredApproval:
    from sideband.approvals import Approval

    by = f"{user_name()} (sideband approvals)"
    answered = await host.approvals.answer(stored.request.id, Approval(verdict, scope, reason=reason, by=by))
    await host.sync()
    return answered


async def _confirm(request: ApprovalRequest, scope: ApprovalScope) -> None:
    """Show the grant exactly, and ask the user to confirm it."""
    lines = [*request_lines(request), *offer_lines(request, [scope])]
    ask = ask_at_terminal(Progressbar())
    if ask is None:
        notice("\n".join(map(render, lines)))
        raise ApprovalUnconfirmed(asked=False)
    if not (await ask(lines, "Grant this?", "y")).is_yes:
        raise ApprovalUnconfirmed(asked=True)


def _described(stored: StoredApproval) -> list[str]:
    request, answer = stored.request, stored.answer
    lines = [f"{request.id}  ({stored.state}, asked {_time(request.asked)})"]
    given = answer.scope if answer is not None and stored.state == "granted" else None
    scopes = [one for one in request.grants if given in (None, one)]
    lines += question_rows([*request_lines(request), *offer_lines(request, scopes)], terminal_width())
    if answer is not None and stored.answered is not None:
        verdict = f"approved ({answer.scope})" if answer.allowed else "denied"
        reason = f": {answer.reason}" if answer.reason else ""
        lines += question_rows([f"{verdict} by {answer.by}, {_time(stored.answered)}{reason}"], terminal_width())
    if stored.state == "open":
        options = f" [{'|'.join(f'--{scope}' for scope in request.grants)}]" if request.grants else ""
        lines.append(f"to answer it: sideband approvals approve {request.id}{options}, or deny")
    elif stored.state == "approved":
        session = request.origin.session
        again = f", for example with `sideband run --resume --session {session}`" if session else ""
        lines.append(f"the answer is used when the same is requested again{again}")
    return lines


def _data(stored: StoredApproval) -> dict[str, Any]:
    return {**stored.as_dict(), "state": stored.state}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().isoformat(timespec="seconds")
