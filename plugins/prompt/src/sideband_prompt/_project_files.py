"""The instruction files of the project that the user accepts: AGENTS.md, CLAUDE.md and others."""

from __future__ import annotations

import logging
from pathlib import Path

from sideband.rendering import render
from sideband_project_instructions import InstructionFile, known_instructions

from ._text import one_line

_log = logging.getLogger(__name__)
_ASKING = frozenset({"cli", "acp"})
_ORDER = "Where instructions of the project contradict each other, those of the files listed first apply."


def project_instructions(
    folder: Path | None, project: Path | None, home: Path, *, limit: int, file_limit: int, channel: str
) -> str:
    """Return the instructions of the files that are used, the nearest first, with notices of what is left out.

    Args:
        folder: the working directory.
        project: the folder of the trusted project, if there is one.
        home: the host's state folder, with the answers of the user.
        limit: the most characters of all files.
        file_limit: the most bytes of a file.
        channel: the channel of the user. Files that are ignored are reported, if it neither asks nor reports itself.
    """
    found = known_instructions(folder, project, home)
    if found.unanswered and channel not in _ASKING:
        names = ", ".join(render(str(file.path)) for file in found.unanswered)
        _log.warning("ignored %s: not accepted; run `sideband chat` in this folder at a terminal to be asked", names)
    parts: list[str] = []
    left = limit
    for file in found.files:
        if file in found.used:
            part = _part(file, file_limit)
            if len(part) > left:
                part = f"[{one_line(file.name)} is left out: the instructions would exceed {limit:,} characters]"
            left -= len(part)
            parts.append(part)
        elif file in found.left_out and (file.in_project or file.importer in {one.name for one in found.used}):
            parts.append(_notice(file))
    shown = list(filter(None, parts))
    return "\n\n".join([_ORDER, *shown] if len(shown) > 1 else shown)


def _part(file: InstructionFile, limit: int) -> str:
    text = file.text
    if len(file.content) > limit:
        text = text.encode()[:limit].decode(errors="ignore")
        text += f"\n\n[{one_line(file.name)} is truncated here at {limit:,} bytes]"
    imported = f", which {one_line(file.importer)} names" if file.importer else ""
    return text and f"Instructions of the project, from {one_line(file.name)}{imported}:\n\n{text}"


def _notice(file: InstructionFile) -> str:
    by = f", which {one_line(file.importer)} names," if file.importer else ""
    return f"[{one_line(file.name)}{by} was not read: {file.problem or 'the user has not accepted it'}]"
