"""``sideband tools list``: the tools that models may call, their sources, and the tools that were omitted."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sideband.command_line import add_host_options, joined, make_host, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._host._tools import list_tools
from .._skills._dirs import add_skill_dirs
from .._terminal._tables import first_sentence, format_table

if TYPE_CHECKING:
    from sideband import Host

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("tools", "list the tools that models may call, and their sources", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list all tools, and why others were omitted")
    add_skill_dirs(listing)
    add_host_options(listing)


def _run(arguments: Namespace) -> ExitCode:
    async def main() -> dict[str, Any]:
        async with make_host(arguments, skill_dirs=arguments.skill_dir) as host:
            await list_tools(host)
            return _data(host)

    data = run_async(main)
    print_data(arguments, data, "\n\n".join(_sections(data)))
    return ExitCode.SUCCESS


def _data(host: Host) -> dict[str, Any]:
    return {
        "tools": [
            {
                "name": one.name,
                "description": one.description,
                "level": one.level.name.lower(),
                "read_only": one.read_only,
                "source": one.source,
            }
            for one in host.tools.current.view.tools
        ],
        "sources": [
            {"name": one.name, "plugin": one.context.plugin, "state": one.state, "tools": len(one.tools)}
            for one in host.tools.sources
        ],
        "problems": list(host.tools.problems),
    }


def _sections(data: dict[str, Any]) -> list[str]:
    rows = [[one["name"], one["level"], one["source"], first_sentence(one["description"])] for one in data["tools"]]
    sections = [format_table(["tool", "level", "source", "description"], rows) if rows else "no tools"]
    if data["sources"]:
        rows = [[one["name"], one["plugin"], one["state"], str(one["tools"])] for one in data["sources"]]
        sections.append(format_table(["source", "plugin", "state", "tools"], rows))
    if data["problems"]:
        sections.append("problems:\n" + joined(f"  - {problem}" for problem in data["problems"]))
    return sections
