"""The options ``--grant`` and ``--only``."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterable

from sideband import UsageError

_OF_SKILL = re.compile(r"([^:=]*)=(.*)", re.DOTALL)  # in a capability, the first `=` comes after a `:`


def add_grant_options(parser: ArgumentParser, grant: str, only: str) -> None:
    """Add both options.

    Args:
        parser: the parser of the command.
        grant, only: the help texts.
    """
    for name, text in (("--grant", grant), ("--only", only)):
        parser.add_argument(name, action="append", metavar="CAPABILITY", help=f"{text}; may be repeated")


def grants_of(skill: str, texts: Iterable[str]) -> list[str]:
    """Return the capabilities of a command that calls one skill, whose name may precede each of them.

    Raises:
        UsageError: if one of them is for another skill.
    """
    found = []
    for text in texts:
        name, capability = _split(text)
        if name is not None and _key(name) != _key(skill):
            raise UsageError(
                f"--grant {text} names the skill `{name}`, but the command calls `{skill}`",
                hint=f"write, for example, --grant '{capability}'",
            )
        found.append(capability)
    return found


def grants_by_skill(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the capabilities of a command that may call several skills, each written as ``SKILL=CAPABILITY``.

    A right for one skill must not become a right of another one, so the name cannot be omitted.

    Raises:
        UsageError: if the name of a skill is missing.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, capability = _split(text)
        if not name:
            raise UsageError(
                f"--grant expects SKILL=CAPABILITY, got `{text}`",
                hint=f"write the name of the skill that gets it before the capability: --grant 'SKILL={capability}'",
            )
        found.setdefault(name, []).append(capability)
    return found


def for_skill(hint: str, skill: str) -> str:
    """Add the name of a skill to the options ``--grant`` in a hint.

    Example:
        >>> for_skill("pass --grant 'sql:path=notes.db' to grant it", "notes")
        "pass --grant 'notes=sql:path=notes.db' to grant it"
    """
    return hint.replace("--grant '", f"--grant '{skill}=")


def _split(text: str) -> tuple[str | None, str]:
    found = _OF_SKILL.fullmatch(text)
    return (found[1], found[2]) if found else (None, text)


def _key(skill: str) -> str:
    return skill.replace("-", "_")
