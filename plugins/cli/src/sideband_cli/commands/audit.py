"""``sideband audit tail|query|verify|why``: read and verify the ledger."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, make_host, print_data, run_async
from sideband.commands import Command
from sideband.errors import UsageError
from sideband.exit_codes import ExitCode

from .._arguments._types import count, moment
from .._audit._load_text import describe_loads, loads_table
from .._audit._record_text import describe_verdict, effects_table, entries_table, record_data, verdict_data

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from sideband import Host
    from sideband.ledger import EffectRecord, Verification

    from .._audit._history import SessionHistory

__all__ = ["sideband_commands"]

_STATUSES = ("done", "failed", "denied", "cancelled", "unknown", "open")
_ABOUT_HOSTS = frozenset({"open", "close", "load"})
"""Each command with a host adds some, which would displace the others."""
_FILTERS = {
    "op": "an op such as http.get, or a family such as http",
    "skill": "a skill, or one of its tools",
    "tool": "a tool, with its skill (github.stars) or without (stars)",
    "session": "the id of an agent's session",
    "run": "the id of an agent's run",
    "step": "a model step of a run (2) with all its effects, or one of its tool calls (2.0)",
    "status": "the outcome: done, failed, denied, cancelled, unknown or open",
    "effect": "the id of an effect",
    "key": "an idempotency key",
    "principal": "the principal on whose behalf the effect was requested",
    "text": "a literal text that the record contains",
}


def sideband_commands() -> Command:
    """Register the command."""
    return Command("audit", "read and verify the ledger of effects", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    tail = actions.add_parser("tail", help="show the last entries")
    tail.add_argument("-n", "--count", type=count, default=20, help="the number of entries (default: 20)")
    tail.add_argument("--all", action="store_true", help="show also when hosts began and ended, and what they loaded")
    query = actions.add_parser("query", help="list the effects that match all given filters, newest first")
    query.add_argument(
        "--kind", choices=("effect", "load"), default="effect", help="list effects (default), or loads of plugins"
    )
    query.add_argument("--plugin", help="with --kind load: a plugin, as KIND.NAME")
    for name, meaning in _FILTERS.items():
        query.add_argument(f"--{name}", type=_status if name == "status" else str, help=meaning)
    query.add_argument("--since", type=moment, metavar="TIME", help="a time in ISO 8601; local time without an offset")
    query.add_argument("--until", type=moment, metavar="TIME", help="a time in ISO 8601; local time without an offset")
    query.add_argument("--limit", type=count, default=100, help="the maximum number of effects (default: 100)")
    verify = actions.add_parser(
        "verify",
        help="check that no entry was changed, removed, inserted, reordered or truncated; exit code 1 otherwise",
    )
    why = actions.add_parser("why", help="explain one effect, from the user's request to its outcome")
    why.add_argument(
        "identifier",
        metavar="ID",
        help="the id of an effect or a tool call, session:run:step, an idempotency key, or a plugin as KIND.NAME",
    )
    for action in (query, verify):
        action.add_argument(
            "--all-hosts", action="store_true", help="include the ledgers of other machines whose hosts share the store"
        )
    for action in (tail, query, verify, why):
        add_host_options(action)


def _status(text: str) -> str:
    if text not in _STATUSES:
        raise ArgumentTypeError(f"expected one of {', '.join(_STATUSES)}, got `{text}`")
    return text


def _run(arguments: Namespace) -> ExitCode:
    return {"tail": _tail, "query": _query, "verify": _verify, "why": _why}[arguments.action](arguments)


def _ask(arguments: Namespace, question: Callable[[Host], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with make_host(arguments, reads_only=True) as host:
            return await question(host)

    return run_async(main)


def _tail(arguments: Namespace) -> ExitCode:
    from sideband.ledger import tail

    without = frozenset() if arguments.all else _ABOUT_HOSTS
    entries = _ask(arguments, lambda host: tail(host.ledger.folder, arguments.count, without=without))
    data = [dict(entry.fields) for entry in entries]
    print_data(arguments, data, entries_table(entries))
    return ExitCode.SUCCESS


def _query(arguments: Namespace) -> ExitCode:
    from sideband.ledger import query

    if arguments.kind == "load":
        return _query_loads(arguments)
    if arguments.plugin:
        raise UsageError("`--plugin` needs `--kind load`", hint="filter effects with --op, --skill or --tool")
    filters = {name: getattr(arguments, name) for name in (*_FILTERS, "since", "until", "limit")}

    async def find(host: Host) -> list[EffectRecord]:
        found = [record for folder in await _folders(host, arguments) for record in await query(folder, **filters)]
        return sorted(found, key=lambda record: record.time, reverse=True)[: arguments.limit]

    records = _ask(arguments, find)
    print_data(arguments, [record_data(record) for record in records], effects_table(records))
    return ExitCode.SUCCESS


async def _folders(host: Host, arguments: Namespace) -> tuple[Path, ...]:
    """Return the folder of the host's ledger, and those of the copies of others if they are wanted."""
    from sideband.ledger import fetch_copies

    others = await fetch_copies(host.store, host.ledger.folder) if arguments.all_hosts else ()
    return (host.ledger.folder, *others)


def _query_loads(arguments: Namespace) -> ExitCode:
    from sideband.ledger import loads

    if unused := [f"--{name}" for name in _FILTERS if name != "text" and getattr(arguments, name) is not None]:
        raise UsageError(f"{' and '.join(unused)} cannot be used with `--kind load`", hint="see `audit query --help`")
    filters = {name: getattr(arguments, name) for name in ("plugin", "text", "since", "until", "limit")}
    entries = _ask(arguments, lambda host: loads(host.ledger.folder, **filters))
    print_data(arguments, [dict(entry.fields) for entry in entries], loads_table(entries))
    return ExitCode.SUCCESS


def _verify(arguments: Namespace) -> ExitCode:
    from sideband.ledger import verify

    async def check(host: Host) -> dict[str, Verification]:
        return {folder.name: await verify(folder, host.store) for folder in await _folders(host, arguments)}

    found = _ask(arguments, check)
    is_intact = all(one.ok for one in found.values())
    if arguments.all_hosts:
        data = {"ok": is_intact, "ledgers": {name: verdict_data(one) for name, one in found.items()}}
        print_data(arguments, data, "\n".join(f"{name}: {describe_verdict(one)}" for name, one in found.items()))
    else:
        (verdict,) = found.values()
        print_data(arguments, verdict_data(verdict), describe_verdict(verdict))
    return ExitCode.SUCCESS if is_intact else ExitCode.FAILURE


def _why(arguments: Namespace) -> ExitCode:
    from sideband.ledger import loads

    from .._audit._explain import explain
    from .._audit._why_text import describe_why, why_data

    identifier = arguments.identifier
    why = _ask(arguments, lambda host: explain(host.ledger.folder, _history(host), identifier))
    if why is None and (found := _ask(arguments, lambda host: loads(host.ledger.folder, plugin=identifier, limit=20))):
        print_data(arguments, [dict(entry.fields) for entry in found], describe_loads(found))
        return ExitCode.SUCCESS
    if why is None:
        from sideband.broker import EffectMissing

        raise EffectMissing(identifier, kind="effect, tool call or key")
    print_data(arguments, why_data(why), describe_why(why))
    return ExitCode.SUCCESS


def _history(host: Host) -> SessionHistory | None:
    """Return the messages of sessions; ``None`` if the agent, which reads them, is not installed."""
    from .._agent._availability import has_agent

    if not has_agent():
        return None
    from sideband_agent.sessions import Sessions

    from .._audit._history import SessionHistory

    return SessionHistory(Sessions(host.store, host.home))
