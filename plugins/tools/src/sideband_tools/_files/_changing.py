"""Write a file only if it is as the session knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.ops import OpError
from sideband.tools import ToolContext

from .._errors import FileNotRead, FileStale
from .._places import Places
from ._known_files import known_digest, remember


async def write_known(ctx: ToolContext, places: Places, path: str, content: str | bytes) -> Mapping[str, Any]:
    """Write a file that does not exist, or that is as the session has read it last.

    Raises:
        FileNotRead: if it exists, and the session has not read it.
        FileStale: if it was changed since.
    """
    expected = await known_digest(ctx, path)
    try:
        written = await _write(ctx, places, path, content, expected)
    except OpError as error:
        if expected is None or not await _is_missing(ctx, places, path):
            raise _explained(error, places.shown(path)) from error
        written = await _write(ctx, places, path, content, None)
    await remember(ctx, path, written["sha256"])
    return written


async def _write(
    ctx: ToolContext, places: Places, path: str, content: str | bytes, expected: str | None
) -> Mapping[str, Any]:
    request: dict[str, Any] = {"path": path, "content": content}
    if expected is not None:
        request |= {"overwrite": True, "expected": expected}
    written: Mapping[str, Any] = await ctx.dispatch("files.write", request, **places.files("read", "write"))
    return written


async def _is_missing(ctx: ToolContext, places: Places, path: str) -> bool:
    try:
        await ctx.dispatch("files.stat", {"path": path}, **places.files("read", "write"))
    except OpError as error:
        return error.code == "file.missing"
    return False


def _explained(error: OpError, name: str) -> Exception:
    if error.code == "file.taken":
        return FileNotRead(name)
    return FileStale(name) if error.code == "file.changed" else error
