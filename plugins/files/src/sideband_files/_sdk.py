"""Helpers for skills in addition to the generated functions: text, JSON, and whether a path exists.

Standard library only.
"""

# mypy: disable-error-code="import-not-found, misc"
# The types are generated with the functions, so they exist only beside them: `sideband sdk stubs` writes both.

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sideband.skill import dispatch

if TYPE_CHECKING:
    from typing import Unpack

    from sideband_sdk.files import FileWriteResult, WriteOptions

__all__ = ["exists", "read_json", "read_text", "write_json"]


async def read_text(path: str) -> str:
    """Return the content of a text file.

    Example:
        notes = await files.read_text("notes/today.txt")
    """
    text: str = (await dispatch("files.read", {"path": path}))["content"]
    return text


async def read_json(path: str) -> Any:
    """Return the value of a JSON file.

    Example:
        settings = await files.read_json("settings.json")
    """
    return json.loads(await read_text(path))


async def write_json(path: str, value: Any, **options: Unpack[WriteOptions]) -> FileWriteResult:
    """Write a value as JSON, replacing an existing file. Accepts the other options of ``files.write``.

    Example:
        await files.write_json("settings.json", {"theme": "dark"})
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    params = {"path": path, "content": text, "overwrite": True, **options}
    written: FileWriteResult = await dispatch("files.write", params)
    return written


async def exists(path: str) -> bool:
    """Return whether a path exists.

    Example:
        if not await files.exists("settings.json"): ...
    """
    try:
        await dispatch("files.stat", {"path": path})
    except Exception as error:
        if getattr(error, "code", None) == "file.missing":
            return False
        raise
    return True
