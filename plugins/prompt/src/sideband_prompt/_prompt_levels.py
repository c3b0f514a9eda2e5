"""The folders from which a prompt is built, the most specific first."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from ._reading import Reading, list_names, read_text


@frozen
class PromptLevel:
    """A folder from which a prompt is built.

    Attributes:
        name: ``project``, ``profile`` or ``global``.
        root: the confining folder: no file outside of it is read.
        prefix: the path of the files below ``root``, with a trailing ``/``.
    """

    name: str
    root: Path
    prefix: str = ""

    def read(self, name: str, limit: int) -> Reading | None:
        """Read one of its files. See ``read_text``."""
        return read_text(self.root, f"{self.prefix}{name}", limit)

    def names(self, folder: str) -> tuple[str, ...]:
        """List one of its folders. See ``list_names``."""
        return list_names(self.root, f"{self.prefix}{folder}")


def own_folder(home: Path, profile: str | None) -> Path:
    """Return the folder of the profile, or the global one without a profile. Memory is written there."""
    return home / "profiles" / profile if profile else home / "prompt"


def find_levels(home: Path, profile: str | None, project: Path | None) -> tuple[PromptLevel, ...]:
    """Return the levels that apply, the most specific first.

    Args:
        home: the host's state folder.
        profile: the name of the profile.
        project: the folder of a trusted project.
    """
    levels = [PromptLevel("global", own_folder(home, None))]
    if profile:
        levels.insert(0, PromptLevel("profile", own_folder(home, profile)))
    if project:
        levels.insert(0, PromptLevel("project", project, ".sideband/"))
    return tuple(levels)
