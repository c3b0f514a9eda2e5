"""``sideband audit tail|query|verify|why``: the record of all effects."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband import UsageError
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._arguments._types import count, moment
from .._audit._record_text import describe_verdict, effects_table, entries_table, record_data, verdict_data
from .._host._options import add_host_options, make_host
from .._host._running import run
from .._terminal._printing import print_data

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sideband import Host

    from .._audit._history import SessionHistory

__all__ = ["sideband_commands"]

_FILTERS = {
    "op": "an op, http.get, or a family, http",
    "skill": "a skill, or a tool of it",
    "tool": "a tool as agents know it, github.stars, or as its skill does, stars",
    "session": "an agent's session, by its id",
    "run": "a run of an agent",
    "step": "a model step of a run, 2, with all that it led to, or one tool call of it, 2.0",
    "status": "how it ended: done, failed, denied, cancelled, unknown or open",
    "effect": "the id of an effect",
    "key": "an idempotency key",
    "principal": "on whose behalf",
    "text": "stands literally in the record",
}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("audit", "read and verify the record of effects", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    tail = actions.add_parser("tail", help="the last entries")
    tail.add_argument("-n", "--count", type=count, default=20)
    query = actions.add_parser("query", help="effects that fit all the given filters, the newest first")
    for name, meaning in _FILTERS.items():
        query.add_argument(f"--{name}", help=meaning)
    query.add_argument("--since", type=moment, metavar="TIME", help="ISO 8601; without a zone it is local time")
    query.add_argument("--until", type=moment, metavar="TIME")
    query.add_argument("--limit", type=count, default=100)
    verify = actions.add_parser(
        "verify", help="whether no entry was changed, removed, added or cut off; exit code 1 if one was"
    )
    why = actions.add_parser("why", help="one effect, from what the user asked for to how it ended")
    why.add_argument(
        "wanted", metavar="ID", help="of an effect or a tool call, or session:run:step, or another idempotency key"
    )
    for action in (tail, query, verify, why):
        add_host_options(action)


def _run(arguments: Namespace) -> ExitCode:
    return {"tail": _tail, "query": _query, "verify": _verify, "why": _why}[arguments.action](arguments)


def _ask(arguments: Namespace, question: Callable[[Host], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with make_host(arguments) as host:
            return await question(host)

    return run(main)


def _tail(arguments: Namespace) -> ExitCode:
    from sideband.ledger import tail

    entries = _ask(arguments, lambda host: tail(host.ledger.folder, arguments.count))
    data = [dict(entry.fields) for entry in entries]
    print_data(arguments, data, entries_table(entries))
    return ExitCode.SUCCESS


def _query(arguments: Namespace) -> ExitCode:
    from sideband.ledger import query

    filters = {name: getattr(arguments, name) for name in (*_FILTERS, "since", "until", "limit")}
    records = _ask(arguments, lambda host: query(host.ledger.folder, **filters))
    print_data(arguments, [record_data(record) for record in records], effects_table(records))
    return ExitCode.SUCCESS


def _verify(arguments: Namespace) -> ExitCode:
    from sideband.ledger import verify

    verdict = _ask(arguments, lambda host: verify(host.ledger.folder, host.store))
    print_data(arguments, verdict_data(verdict), describe_verdict(verdict))
    return ExitCode.SUCCESS if verdict.ok else ExitCode.FAILURE


def _why(arguments: Namespace) -> ExitCode:
    from .._agent._availability import has_agent
    from .._audit._explain import explain
    from .._audit._why_text import describe_why, why_data

    wanted = arguments.wanted
    why = _ask(arguments, lambda host: explain(host.ledger.folder, _history(host), wanted))
    if why is None:
        if not has_agent():
            raise UsageError(f"the ledger does not know `{wanted}`", hint="`sideband audit query` lists effects")
        raise UsageError(
            f"neither the ledger nor a session knows `{wanted}`",
            hint="`sideband audit query` lists effects, `sideband sessions show` what was said",
        )
    print_data(arguments, why_data(why), describe_why(why))
    return ExitCode.SUCCESS


def _history(host: Host) -> SessionHistory | None:
    """Return what was said in sessions; ``None`` without the agent, which keeps them."""
    from .._agent._availability import has_agent

    if not has_agent():
        return None
    from sideband_agent.sessions import Sessions

    from .._audit._history import SessionHistory

    return SessionHistory(Sessions(host.store, host.home))
