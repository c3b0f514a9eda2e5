"""The option ``--skill-dir``, and hints that are right for the folders that it names."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path
from shlex import quote


def add_skill_dirs(parser: ArgumentParser) -> None:
    """``--skill-dir``, as often as one likes."""
    parser.add_argument("--skill-dir", action="append", default=[], type=Path, metavar="DIR", help="a skill's folder")


def skill_hint(hint: str, folders: list[Path], *, unknown: bool) -> str:
    """A hint for the skills that this command line has.

    Args:
        hint: what it says for those that are always there.
        folders: what ``--skill-dir`` named.
        unknown: whether it is about a skill that was not found.

    Example:
        >>> skill_hint("`sideband skills list` shows all", [Path("here")], unknown=True)
        '`sideband skills list --skill-dir here` shows all'
    """
    if unknown and not folders:
        return f"{hint}; `--skill-dir DIR` adds a skill's folder"
    options = "".join(f" --skill-dir {quote(str(folder))}" for folder in folders)
    return re.sub(r"`(sideband skills (?:list|show|install)[^`]*)`", lambda found: f"`{found[1]}{options}`", hint)
