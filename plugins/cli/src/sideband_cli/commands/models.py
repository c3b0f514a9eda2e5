"""``sideband models list``: the available models with their prices, and the providers that need configuration."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sideband.command_line import add_host_options, make_host, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._terminal._columns import terminal_width
from .._terminal._tables import format_table, paragraph
from .._terminal._words import one_line

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("models", "list the available models, and what other providers need", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list the models of all reachable providers")
    listing.add_argument("--provider", metavar="PROVIDER", help="list only the models of this provider")
    add_host_options(listing)


def _run(arguments: Namespace) -> ExitCode:
    async def main() -> Any:
        params = {"provider": arguments.provider} if arguments.provider else {}
        async with make_host(arguments) as host:
            return await host.op("llm.models", params)

    found = run_async(main)
    print_data(arguments, found, "\n\n".join(_parts(found)))
    return ExitCode.SUCCESS


def _parts(found: Mapping[str, Any]) -> Iterable[str]:
    yield _table(found["models"]) if found["models"] else "no models"
    if found["aliases"]:
        yield "\n".join(
            [
                "aliases:",
                *(f"  {one_line(alias)}: {one_line(name)}" for alias, name in sorted(found["aliases"].items())),
            ]
        )
    if found["problems"]:
        yield "\n".join(["unavailable providers:", *map(_problem, found["problems"])])
    if found["setup"]:
        ways = [paragraph(f"{number}. {way}", "  ", "     ") for number, way in enumerate(found["setup"], 1)]
        yield "\n".join(["ways to set up a model:", *ways])


def _table(models: Sequence[Mapping[str, Any]]) -> str:
    """Format models as a table. Names are never cut, so that they can be copied; a long one gets its own line."""
    columns = ["window", "$ in", "$ out", "supports"]
    details = format_table(columns, [_details(model) for model in models]).splitlines()
    names = [one_line(model["name"]) for model in models]
    width = min(max(map(len, names)), max(20, terminal_width() - 2 - max(map(len, details))))
    lines: list[str] = []
    for name, line in zip(["model", "-" * width, *names], details, strict=True):
        if len(name) > width:
            lines.append(name)
            name = ""  # noqa: PLW2901  its details follow on the next line
        lines.append(f"{name:<{width}}  {line}".rstrip())
    return "\n".join([*lines, "", "$ in, $ out: US dollars per million input and output tokens"])


def _details(model: Mapping[str, Any]) -> list[str]:
    prices = model["prices"] or {}
    window = f"{model['context_window']:,}" if model["context_window"] else "?"
    abilities = [ability for ability in ("images", "files", "audio", "thinking") if model[ability]]
    if model["tools"] is False:
        abilities.append("no tools")
    return [window, _price(prices.get("input")), _price(prices.get("output")), ", ".join(abilities)]


def _price(price: float | None) -> str:
    if price is None:
        return "?"
    return f"{price:.2f}" if price == 0 or price >= 0.01 else f"{price:.2g}"


def _problem(problem: Mapping[str, Any]) -> str:
    text = problem["message"]
    if not text.startswith(problem["provider"]):
        text = f"{problem['provider']}: {text}"
    return paragraph(f"{text}; {problem['hint']}" if problem["hint"] else text, "  ", "    ")
