"""``sideband sdk stubs``: the modules that skills import, for editors and type checkers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from sideband.commands import Command

from .._hosting import add_host_options, make_host, run
from .._output import notice, print_data

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("sdk", "write the SDK of the installed op families", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    stubs = actions.add_parser("stubs", help="write sideband_sdk/FAMILY.py for each family")
    stubs.add_argument("folder", type=Path, nargs="?", default=Path(), help="where to; this folder if left out")
    add_host_options(stubs)


def _run(arguments: Namespace) -> int:
    async def main() -> dict[str, str]:
        from sideband.ops import render_family
        from sideband.plugins import PluginError

        found = {}
        async with make_host(arguments) as host:
            for name in host.plugins.names("op"):
                try:
                    found[name] = render_family((await host.broker.ops.plugin(name)).contribution)
                except PluginError as error:
                    notice(f"notice: {error.message}")
        return found

    sources = run(main)
    folder = arguments.folder / "sideband_sdk"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, source in sources.items():
        file = folder / f"{name}.py"
        file.write_text(source, encoding="utf-8")
        written.append(str(file))
    print_data(arguments, {"files": written}, "\n".join(written))
    return 0
