"""The option ``--skill-dir``, and hints that take it into account."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from pathlib import Path
from shlex import quote


def add_skill_dirs(parser: ArgumentParser) -> None:
    """Add ``--skill-dir``, which may be repeated."""
    parser.add_argument(
        "--skill-dir", action="append", default=[], type=Path, metavar="DIR", help="a skill folder; may be repeated"
    )


def skill_hint(hint: str, folders: list[Path], *, unknown: bool) -> str:
    """Adapt a hint to the skill folders of this command line.

    Args:
        hint: the hint for a command line without ``--skill-dir``.
        folders: the values of ``--skill-dir``.
        unknown: whether the hint is for an unknown skill.

    Example:
        >>> skill_hint("`sideband skills list` shows all", [Path("here")], unknown=True)
        '`sideband skills list --skill-dir here` shows all'
    """
    if unknown and not folders:
        return f"{hint}; `--skill-dir DIR` adds a skill folder"
    options = "".join(f" --skill-dir {quote(str(folder))}" for folder in folders)
    return re.sub(r"`(sideband skills (?:list|show|install)[^`]*)`", lambda found: f"`{found[1]}{options}`", hint)
