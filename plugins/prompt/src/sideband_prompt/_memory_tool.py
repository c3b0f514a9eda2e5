"""The tool with which the model changes its notes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from anyio import to_thread
from sideband.ops import Level
from sideband.tools import ToolContext, tool

from ._config import Config
from ._errors import MemoryDuplicate, MemoryEntryAmbiguous, MemoryEntryMissing
from ._memory import MemoryFile, length
from ._models import MemoryParams
from ._prompt_levels import own_folder

_LATER = "The change appears in the system prompt of the next session, or after a reload."


@tool("prompt.memory", level=Level.CONTROLLED)
async def memory(params: MemoryParams, ctx: ToolContext) -> dict[str, Any]:
    """Manage the facts that you see in each session. They appear in the system prompt of later sessions, and are few.

    If you have `memory`, it is for longer notes, and for what you need only sometimes.

    Add what will matter again: a decision and its reason, how something is done here, a correction of the user. Do not
    add the content of files or anything that matters only now, and never a password, a key or another secret. Write one
    fact per entry, understandable without this conversation. Replace or remove what is no longer true.
    """
    config: Config = ctx.config
    limit = config.user_limit if params.target == "user" else config.memory_limit
    file = MemoryFile(own_folder(ctx.home, config.profile), params.target, limit)
    if params.action == "list":
        return _answer(file, await to_thread.run_sync(file.read))
    entries = await to_thread.run_sync(file.change, partial(_EDITS[params.action], params))
    return {**_answer(file, entries), "note": _LATER}


def _answer(file: MemoryFile, entries: list[str]) -> dict[str, Any]:
    return {"target": file.target, "entries": entries, "used": length(entries), "limit": file.limit}


def _add(params: MemoryParams, entries: list[str]) -> list[str]:
    _check_duplicate(params, entries)
    return [*entries, params.text]


def _replace(params: MemoryParams, entries: list[str]) -> list[str]:
    index = _find(params, entries)
    _check_duplicate(params, [*entries[:index], *entries[index + 1 :]])
    return [*entries[:index], params.text, *entries[index + 1 :]]


def _remove(params: MemoryParams, entries: list[str]) -> list[str]:
    index = _find(params, entries)
    return [*entries[:index], *entries[index + 1 :]]


def _check_duplicate(params: MemoryParams, entries: list[str]) -> None:
    if params.text.casefold() in (entry.casefold() for entry in entries):
        raise MemoryDuplicate(params.target)


def _find(params: MemoryParams, entries: list[str]) -> int:
    """Return the index of the matching entry. An exact match takes precedence over entries that contain it."""
    if params.entry in entries:
        return entries.index(params.entry)
    wanted = params.entry.casefold()
    found = [index for index, entry in enumerate(entries) if wanted in entry.casefold()]
    if not found:
        raise MemoryEntryMissing(params.target, params.entry)
    if len(found) > 1:
        raise MemoryEntryAmbiguous(params.target, params.entry, (entries[index] for index in found))
    return found[0]


_EDITS: dict[str, Callable[[MemoryParams, list[str]], list[str]]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
}
