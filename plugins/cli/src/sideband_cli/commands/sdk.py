"""``sideband sdk stubs``: write the modules that skills import, for editors and type checkers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sideband.command_line import add_host_options, make_host, print_data, run_async
from sideband.commands import Command
from sideband.exit_codes import ExitCode

from .._host._plugins import op_families

if TYPE_CHECKING:
    from sideband.ops import OpFamily

__all__ = ["sideband_commands"]


def sideband_commands() -> Command:
    """Register the command."""
    return Command("sdk", "write the SDK of the installed op families", _configure, _run)


def _configure(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    stubs = actions.add_parser(
        "stubs", help="write the package sideband_sdk, with a module and its types for each op family"
    )
    stubs.add_argument(
        "folder", type=Path, nargs="?", default=Path(), help="the parent folder (default: the current folder)"
    )
    add_host_options(stubs)


def _run(arguments: Namespace) -> ExitCode:
    written = [str(file) for file in _write(arguments.folder / "sideband_sdk", run_async(lambda: _families(arguments)))]
    print_data(arguments, {"files": written}, "\n".join(written))
    return ExitCode.SUCCESS


async def _families(arguments: Namespace) -> list[OpFamily]:
    async with make_host(arguments) as host:
        return await op_families(host)


def _write(folder: Path, families: list[OpFamily]) -> list[Path]:
    """Write the SDK modules and their types, without the worker's runtime, to ``folder``, and keep its other files."""
    from sideband.ops import stub_files, write_sdk

    stubs = stub_files(families)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary:
        made = sorted((write_sdk(Path(temporary), families, {}) / folder.name).iterdir())
        written = [copyfile(file, folder / file.name) for file in made]
    for name, text in stubs.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sorted([*written, *(folder / name for name in stubs)])
