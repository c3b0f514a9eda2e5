"""The places in which the tools of an agent work, and the paths that a model writes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

from attrs import field, frozen
from sideband.rendering import render
from sideband.tools import ToolContext

from ._config import Config, config_of
from ._errors import OutsidePlaces, PathProtected

SHELLS = ("bash", "sh")
"""The programs that run commands: the first one that is installed."""
_GIT = ".git"


class CallRights(TypedDict):
    """The arguments of ``ctx.dispatch`` for the rights of a call.

    Attributes:
        uses: all rights of the tools.
        capabilities: those that the call needs.
    """

    uses: list[str]
    capabilities: list[str]


@frozen
class Places:
    """The places of one agent.

    Attributes:
        folder: the working directory of the agent, without symbolic links.
        folders: all places.
        programs: further folders that commands may read.
        config: the configuration of the plugin.
    """

    folder: Path
    folders: tuple[Path, ...]
    programs: tuple[Path, ...] = ()
    config: Config = field(factory=Config)

    @classmethod
    def of(cls, ctx: ToolContext) -> Places:
        """Return the places of the agent that calls a tool."""
        folder = Path(os.path.realpath(ctx.folder))
        config = config_of(ctx)
        places, programs = (
            tuple(Path(os.path.realpath(folder / Path(one).expanduser())) for one in listed)
            for listed in (config.places, config.programs)
        )
        return cls(folder, places, programs, config)

    def files(self, *modes: str) -> CallRights:
        """Return the rights for a call that reads or changes files in the places."""
        return {"uses": self._uses(), "capabilities": self._files(*modes)}

    def shell(self) -> CallRights:
        """Return the rights for a call that runs a command in the places."""
        return {"uses": self._uses(), "capabilities": self._commands()}

    def _uses(self) -> list[str]:
        """Return the rights of all tools in the places. They are always the same, so one question covers them."""
        return [*self._files("read", "write"), *(self._commands() if self.config.commands else ())]

    def _files(self, *modes: str) -> list[str]:
        fields = f"mode={'|'.join(modes)},hidden=*"
        return [f"files:path={quote(str(one).rstrip('/'))}/*,{fields}" for one in self.folders]

    def _commands(self) -> list[str]:
        shell = f"shell:binary={'|'.join(SHELLS)},runs=any,network={'yes' if self.config.network else 'no'}"
        places = {"execute": self.folders, "read": self.programs}
        return [f"{shell},place={_joined(paths)},mode={mode}" for mode, paths in places.items() if paths]

    def path(self, text: str) -> str:
        """Return the absolute path that a model means by a path: relative to the working directory, or absolute.

        Raises:
            OutsidePlaces: if it is in none of the places. Links are followed later, and checked by the op.
        """
        path = os.path.normpath(self.folder / os.path.expanduser(text))  # noqa: PTH111  no error for unknown users
        if not any(Path(path).is_relative_to(one) for one in self.folders):
            raise OutsidePlaces(text, [str(one) for one in self.folders])
        return path

    def changed_path(self, text: str) -> str:
        """Return the same for a file or folder that is to be changed.

        Raises:
            OutsidePlaces: if it is in none of the places.
            PathProtected: if it is in a folder `.git`. Its hooks and settings are programs that the user starts later,
                outside of any isolation, with the next use of git.
        """
        path = self.path(text)
        if any(part.lower() == _GIT for one in (path, os.path.realpath(path)) for part in Path(one).parts):
            raise PathProtected(text)
        return path

    def place_of(self, path: str) -> str:
        """Return the innermost place that contains a path."""
        return max((str(one) for one in self.folders if Path(path).is_relative_to(one)), key=len)

    def shown(self, path: str) -> str:
        """Return a path as models see it: relative to the working directory if it is below it, and on one line.

        Example:
            >>> places = Places(Path("/srv/app"), ())
            >>> places.shown("/srv/app/a.py"), places.shown("/etc/hosts"), places.shown("/srv/app")
            ('a.py', '/etc/hosts', '.')
        """
        found = Path(path)
        return render(str(found.relative_to(self.folder)) if found.is_relative_to(self.folder) else path)


def _joined(paths: Iterable[Path]) -> str:
    return "|".join(quote(str(one)) for one in paths)
