"""The folders that a prompt is made from, the most specific first."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from ._reading import Reading, list_names, read_text


@frozen
class PromptPlace:
    """One of the folders.

    Attributes:
        name: ``project``, ``profile`` or ``global``.
        root: nothing outside of it is read.
        prefix: where below ``root`` the files are, with ``/`` at its end.
    """

    name: str
    root: Path
    prefix: str = ""

    def read(self, name: str, limit: int) -> Reading | None:
        """A file of it. See ``read_text``."""
        return read_text(self.root, f"{self.prefix}{name}", limit)

    def names(self, folder: str) -> tuple[str, ...]:
        """What is in one of its folders. See ``list_names``."""
        return list_names(self.root, f"{self.prefix}{folder}")


def own_folder(home: Path, profile: str | None) -> Path:
    """The folder that belongs to the profile, or to nobody in particular: where memory is written."""
    return home / "profiles" / profile if profile else home / "prompt"


def find_places(home: Path, profile: str | None, project: Path | None) -> tuple[PromptPlace, ...]:
    """The places that apply.

    Args:
        home: the host's folder.
        profile: the name of the profile.
        project: the folder of a project that is trusted.
    """
    places = [PromptPlace("global", own_folder(home, None))]
    if profile:
        places.insert(0, PromptPlace("profile", own_folder(home, profile)))
    if project:
        places.insert(0, PromptPlace("project", project, ".sideband/"))
    return tuple(places)
