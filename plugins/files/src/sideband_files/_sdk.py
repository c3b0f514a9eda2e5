"""What skills get besides the generated functions: texts, JSON and the question whether something is there.

Standard library only.
"""

import json
from typing import Any

from sideband.skill import dispatch

__all__ = ["exists", "read_json", "read_text", "write_json"]


async def read_text(path: str) -> str:
    """All of a text file.

    Example:
        notes = await files.read_text("notes/today.txt")
    """
    text: str = (await dispatch("files.read", {"path": path}))["content"]
    return text


async def read_json(path: str) -> Any:
    """What a JSON file holds.

    Example:
        settings = await files.read_json("settings.json")
    """
    return json.loads(await read_text(path))


async def write_json(path: str, value: Any, **options: Any) -> Any:
    """Write a value as JSON. Takes what ``files.write`` takes otherwise; a file that is there is replaced.

    Example:
        await files.write_json("settings.json", {"theme": "dark"})
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return await dispatch("files.write", {"path": path, "content": text, "overwrite": True, **options})


async def exists(path: str) -> bool:
    """Whether there is anything at a path.

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
