"""What is at a path before it is changed, kept so that it can be put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen
from sideband.ops import OpContext
from sideband_confined_files import ConfinedFolder, FileMissing, FileReader, FileTooLarge

from ._config import Config
from ._targets import FileTarget


@frozen
class Before:
    """A file as it was.

    Attributes:
        sha256: its digest.
        size: its bytes.
        permissions: the lower nine bits of its mode.
        kept: whether there is a blob with its content.
    """

    sha256: str
    size: int
    permissions: int
    kept: bool

    def noted(self) -> Mapping[str, Any]:
        """As the effect's record has it."""
        return {"sha256": self.sha256, "size": self.size, "permissions": self.permissions, "kept": self.kept}


async def look(folder: ConfinedFolder, target: FileTarget, ctx: OpContext, config: Config) -> Before | None:
    """What is there, kept as a blob if it is small enough; ``None`` for nothing.

    Args:
        folder: where the target is.
        target: the file.
        ctx: the dispatch.
        config: the limits.

    Raises:
        FileRefused: there is no ordinary file.
        FileTooLarge: it is larger than any file may be.
        FileFailed, BlobStorage: the system refuses.
    """
    try:
        async with folder.reading(target.path) as reader:
            size = reader.entry.size
            if size > config.max_file_bytes:
                raise FileTooLarge(target.name, size, config.max_file_bytes)
            kept = size <= config.undo_bytes and config.undo_bytes > 0
            sha256 = await _keep(reader, ctx, config) if kept else await reader.digest()
            return Before(sha256, size, reader.entry.permissions, kept)
    except FileMissing:
        return None


async def _keep(reader: FileReader, ctx: OpContext, config: Config) -> str:
    # it may be growing: then it is another file than the one that was looked at, and the change will be refused
    async with ctx.blobs.create(max_bytes=config.undo_bytes) as new:
        while (piece := await reader.read()) and new.size + len(piece) <= config.undo_bytes:
            await new.write(piece)
        return (await new.commit()).sha256
