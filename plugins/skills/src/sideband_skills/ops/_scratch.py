"""The working directory of a script, and the files that it writes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from sideband.ops import OpContext

_MOST_FILES = 500
_ROOT = "skill-runs"
BLOBS = "blobs"


@frozen
class ScratchFolder:
    """A folder of the host in which one script runs.

    Attributes:
        path: its path, relative to the host's folder for files.
    """

    path: str

    @staticmethod
    def root(digest: str) -> str:
        """Return the folder that contains those of one version of a skill."""
        return f"{_ROOT}/{digest[:16]}"

    @classmethod
    async def make(cls, ctx: OpContext, digest: str) -> ScratchFolder:
        """Make the folder for one effect."""
        path = f"{cls.root(digest)}/{ctx.effect}"
        await ctx.dispatch("files.make_folder", {"path": path})
        return cls(path)

    async def entries(self, ctx: OpContext) -> tuple[list[Mapping[str, Any]], bool]:
        """Return what is in it, and whether there may be more."""
        params = {"path": self.path, "pattern": "**/*", "limit": _MOST_FILES, "hidden": True}
        found = await ctx.dispatch("files.find", params)
        return list(found["entries"]), bool(found["truncated"])

    async def move(self, ctx: OpContext, name: str, target: str) -> str:
        """Move a file to another folder, and return its new path. An existing file is not replaced."""
        path = f"{target.rstrip('/')}/{name}"
        await ctx.dispatch("files.move", {"path": f"{self.path}/{name}", "target": path})
        return path

    async def store(self, ctx: OpContext, name: str) -> str:
        """Store a file as a blob, delete it, and return its digest."""
        path = f"{self.path}/{name}"
        read = await ctx.dispatch("files.read", {"path": path, "kind": "blob"})
        await ctx.dispatch("files.delete", {"path": path})
        return str(read["sha256"])

    async def remove(self, ctx: OpContext, folders: Sequence[str]) -> None:
        """Remove the folder, which has no files any more, and the folders in it."""
        for name in sorted(folders, reverse=True):
            await ctx.dispatch("files.delete", {"path": f"{self.path}/{name}/"})
        await ctx.dispatch("files.delete", {"path": f"{self.path}/"})
