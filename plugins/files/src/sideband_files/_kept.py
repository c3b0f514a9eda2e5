"""Inspects a file before it is changed, and keeps its content so that it can be restored."""

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
    """A file before a change.

    Attributes:
        sha256: its digest.
        size: its size in bytes.
        permissions: its permission bits.
        kept: whether a blob contains its content.
    """

    sha256: str
    size: int
    permissions: int
    kept: bool

    def to_record(self) -> Mapping[str, Any]:
        """Return the file in the form that is recorded with the effect."""
        return {"sha256": self.sha256, "size": self.size, "permissions": self.permissions, "kept": self.kept}


async def inspect(folder: ConfinedFolder, target: FileTarget, ctx: OpContext, config: Config) -> Before | None:
    """Return the file at a path, with its content kept as a blob if it is small enough; ``None`` if it does not exist.

    Args:
        folder: the folder of the target.
        target: the file.
        ctx: the op's context.
        config: the limits.

    Raises:
        FileRefused: if it is not a regular file.
        FileTooLarge: if it exceeds the maximum size of a file.
        FileFailed, BlobStorage: on an I/O error.
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
    # if the file is growing, its digest will differ from the kept content, and the change is rejected
    async with ctx.blobs.create(max_bytes=config.undo_bytes) as new:
        while (chunk := await reader.read()) and new.size + len(chunk) <= config.undo_bytes:
            await new.write(chunk)
        return (await new.commit()).sha256
