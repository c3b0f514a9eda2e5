"""Instructions of projects that are not trusted."""

from __future__ import annotations

from pathlib import Path

from sideband.command_line import notice

_FILE = "AGENTS.md"


def report_ignored_instructions(home: Path) -> None:
    """Report an AGENTS.md that agents do not get, because its project has no ``sideband.toml`` and is not trusted.

    Settings report a ``sideband.toml`` that is not trusted.
    """
    from sideband.settings import trusted_project

    here = Path.cwd()
    folders = (here, *here.parents)
    if trusted_project(home, here) or any((folder / "sideband.toml").is_file() for folder in folders):
        return
    found = next((folder for folder in folders if (folder / _FILE).is_file()), None)
    if found is not None:
        use = "add --trust" if found == here else f"run a command with --trust in {found}"
        notice(f"notice: ignored {found / _FILE}: the project is not trusted; {use} to use it")
