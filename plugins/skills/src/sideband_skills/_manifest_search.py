"""Search for the manifest of a folder by the names of its files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ._frontmatter import read_document
from ._meter import Meter
from ._problems import Problems
from ._skill_files import identity_of, read_text


def find_manifest(folder: Path, entries: Iterable[os.DirEntry[str]], meter: Meter) -> str | None:
    """Return the manifest of a folder: SKILL.md, skill.yaml or a readme.md in AgentOS's format, or ``None``."""
    files = {entry.name: entry for entry in entries if not entry.is_dir(follow_symlinks=False)}
    for wanted in ("SKILL.md", "skill.md", "skill.yaml", "skill.yml"):
        if wanted in files:
            return wanted
        found = [name for name in files if name.lower() == wanted.lower()]
        if found:
            return min(found)
    # a readme is opened to detect the format, so it must not be a link; the others are only selected by name
    readmes = [entry for entry in files.values() if entry.name.lower() == "readme.md"]
    return next((entry.name for entry in readmes if _is_agentos(folder, entry, meter)), None)


def _is_agentos(folder: Path, entry: os.DirEntry[str], meter: Meter) -> bool:
    """Return whether a readme is a manifest in AgentOS's format."""
    ignored = Problems(str(folder), meter)
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    text = read_text(folder, entry.name, identity_of(status), ignored)
    values = read_document(text, ignored, file=entry.name).values if text is not None else None
    return values is not None and bool(values.get("id") or values.get("name"))
