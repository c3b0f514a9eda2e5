"""The folder of the user's own skills, which the tools may change."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from attrs import frozen
from sideband.tools import ToolContext

from .._config import config_of
from .._errors import SkillFileName


@frozen
class OwnSkills:
    """The folder of the user's own skills.

    Attributes:
        root: the folder, without symbolic links.
    """

    root: Path

    @classmethod
    def of(cls, ctx: ToolContext) -> OwnSkills:
        """Return the configured folder."""
        return cls(Path(os.path.realpath(ctx.folder / Path(config_of(ctx).skills).expanduser())))

    @property
    def uses(self) -> list[str]:
        """The capabilities for the files in it."""
        return [f"files:path={quote(str(self.root))}/*,mode=read|write,hidden=*"]

    def folder(self, name: str) -> str:
        """Return the folder of a skill."""
        return str(self.root / name)

    def path(self, name: str, file: str) -> str:
        """Return the path of a file of a skill.

        Raises:
            SkillFileName: if it is not a path in the folder of the skill, or hidden, so that it would not belong to it.
        """
        parts = PurePosixPath(file).parts
        if not parts or file.startswith("/") or ".." in parts or "\0" in file or file.endswith("/"):
            raise SkillFileName(file, "write a path within the skill, such as `scripts/convert.py`")
        if any(part.startswith((".", "__pycache__")) for part in parts):
            raise SkillFileName(file, "hidden files do not belong to a skill")
        return str(self.root.joinpath(name, *parts))
