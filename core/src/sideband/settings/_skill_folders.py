"""The table ``[skills]``, and the folders in which a host searches for skills."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field

from ..loading import SkillPackage, SkillSources

_DEFAULTS = (Path(".sideband/skills"), Path(".claude/skills"), Path(".agents/skills"))
_DIGEST = re.compile("[0-9a-f]{64}")


class SkillSettings(BaseModel):
    """The table ``[skills]``.

    Example:
        >>> SkillSettings(folders=["/srv/skills"]).folders
        ['/srv/skills']
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    folders: list[str] = Field(
        default_factory=list, description="folders of skills; a relative path starts at the folder of its file"
    )
    project_folders: list[str] = Field(
        default_factory=list, description="folders that are searched last; `folders` of a project's file are added here"
    )


@frozen
class SkillFolders:
    """The folders in which a host searches for skills. A skill takes the name of no skill that was found before.

    Args:
        explicit: folders that the user or the program named, searched first.
        configured: folders in the user's configuration.
        personal: default folders in the user's home directory, which need not exist yet. Links in them are followed.
        project: folders of the trusted project, searched last, after installed packages. A project can therefore add
            skills, and replace none.
        untrusted: folders of a project that is not trusted. They are not searched.
    """

    explicit: tuple[Path, ...] = ()
    configured: tuple[Path, ...] = ()
    personal: tuple[Path, ...] = ()
    project: tuple[Path, ...] = ()
    untrusted: tuple[Path, ...] = ()

    def sources(self, packages: Iterable[SkillPackage], home: Path | None = None) -> SkillSources:
        """Return the sources for skill loaders, in their order."""
        personal = (child for folder in self.personal for child in _children(folder))
        return SkillSources((*self.explicit, *self.configured, *personal), tuple(packages), self.project, home)


def find_skill_folders(
    settings: SkillSettings, user: Path | None, trusted: Path | None, project: Path | None
) -> SkillFolders:
    """Return the folders to search.

    Args:
        settings: the configured folders.
        user: the user's home directory, or ``None``.
        trusted: the folder of the trusted project, or ``None``.
        project: the folder of the project, whether it is trusted or not, or ``None``.
    """
    defaults = [folder / name for folder in (trusted or project,) if folder and folder != user for name in _DEFAULTS]
    # A default folder of a project must be in it, since a link changes without a new decision of the user.
    beside = tuple(one for one in defaults if one.is_dir() and one.resolve().is_relative_to(one.parents[1].resolve()))
    return SkillFolders(
        configured=tuple(map(Path, settings.folders)),
        # One that does not exist yet may be created while the host runs.
        personal=tuple(user / name for name in _DEFAULTS) if user else (),
        project=(*map(Path, settings.project_folders), *(beside if trusted else ())),
        untrusted=() if trusted else beside,
    )


def resolve_folders(values: Mapping[str, Any], base: Path, *, of_project: bool = False) -> dict[str, Any]:
    """Return the settings of a file with absolute skill folders. Values of other types are kept, and refused later.

    Args:
        values: the settings.
        base: the folder of the file.
        of_project: whether it is a project's file. Its folders must not replace those of the user.
    """
    table = values.get("skills")
    if not isinstance(table, dict):
        return dict(values)
    resolved: dict[str, Any] = {}
    for key, folders in table.items():
        if isinstance(folders, list) and all(isinstance(one, str) for one in folders):
            # `expanduser` of pathlib raises an exception for an unknown user.
            absolute = [str(base / os.path.expanduser(one)) for one in folders]  # noqa: PTH111
            resolved["project_folders" if of_project and key == "folders" else key] = absolute
        else:
            resolved[key] = folders
    return {**values, "skills": resolved}


def _children(folder: Path) -> Iterator[Path]:
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        yield folder  # the loader reports it
        return
    # `~/.sideband/skills` can also contain the snapshots of skills, which are named by their digests.
    yield from (
        path for path in paths if not path.name.startswith(".") and not _DIGEST.fullmatch(path.name) and path.is_dir()
    )
