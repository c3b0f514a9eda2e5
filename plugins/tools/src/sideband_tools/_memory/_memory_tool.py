"""The tool `memory`: notes that outlive a session.

They are Markdown files in the host's folder for files, in a folder for each principal: users can read and change them,
and each change is an effect that can be undone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from sideband.ops import Level, OpError
from sideband.tools import ToolContext, tool

from .._errors import NoteMissing, ParameterMissing
from ._models import NoteParams
from ._ranking import beginnings, ranked

_MAX_LISTED = 500
_MAX_MATCHES = 2_000
_MAX_FOUND = 10
_LINES = 3
_NONE = "[there are no notes]"


@tool("memory", level=Level.CONTROLLED, exclusive=True, resume="replay")
async def memory(params: NoteParams, ctx: ToolContext) -> str:
    """Write, read, list, search and delete notes for later sessions of this user.

    You see notes only if you read or search them; if you have `prompt__memory`, it is for single facts that you must
    always see. Note what will be useful later and is not written elsewhere: decisions with their reasons, how a project
    is built, what you have found out. Search before you ask the user for something that may be noted. Never note
    secrets.
    """
    notes = _Notes(ctx)
    if params.action == "list":
        return await notes.listed()
    if params.action == "search":
        return await notes.found(_given(params, "query"))
    name = _given(params, "name")
    if params.action == "write":
        return await notes.write(name, _given(params, "text"))
    return await (notes.read(name) if params.action == "read" else notes.delete(name))


def _given(params: NoteParams, name: str) -> str:
    value: str | None = getattr(params, name)
    if value is None:
        raise ParameterMissing(params.action, name)
    return value


def _with_lines(name: str, lines: Sequence[str], query: str) -> str:
    best = ranked([("", one) for one in lines], query)[:_LINES]
    return "\n".join([name, *(f"  {lines[one]}" for one in sorted(best))])


def folder_of(principal: str) -> str:
    """Return the folder of the notes of a principal, below the host's folder for files.

    Example:
        >>> folder_of("user"), folder_of("../ada"), folder_of("..")
        ('memory/user', 'memory/%2E%2E%2Fada', 'memory/%2E%2E')
    """
    # A dot at the beginning would hide the folder, and two of them would lead out of it.
    return f"memory/{quote(principal, safe='').replace('.', '%2E')}"


class _Notes:
    """The notes of the principal for whom an agent works."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._folder = folder_of(ctx.principal)

    async def listed(self) -> str:
        """Return the names of all notes."""
        try:
            found = await self._dispatch("files.list", path=self._folder, limit=_MAX_LISTED)
        except OpError as error:
            if error.code != "file.missing":
                raise
            return _NONE
        names = [one["name"].removesuffix(".md") for one in found["entries"] if one["name"].endswith(".md")]
        return "\n".join(names) or _NONE

    async def read(self, name: str) -> str:
        return str((await self._existing("files.read", name))["content"])

    async def write(self, name: str, text: str) -> str:
        written = await self._dispatch("files.write", path=self._path(name), content=text, overwrite=True)
        return f"{'replaced' if written['replaced'] else 'wrote'} the note `{name}`"

    async def delete(self, name: str) -> str:
        await self._existing("files.delete", name)
        return f"deleted the note `{name}`"

    async def found(self, query: str) -> str:
        """Return the notes that fit the query best, with the lines of them that do."""
        texts, is_complete = await self._lines(r"\S")
        if texts is None:
            return _NONE
        if not is_complete:
            pattern = "|".join(map(re.escape, beginnings(query))) or "$^"
            texts, is_complete = await self._lines(pattern)
            texts = texts or {}
        best = ranked([(name, "\n".join(lines)) for name, lines in texts.items()], query)[:_MAX_FOUND]
        names = list(texts)
        shown = [_with_lines(names[one], texts[names[one]], query) for one in best]
        hidden = [] if is_complete else ["[there are too many notes, and some were not searched: use rarer words]"]
        return "\n".join([*shown, *hidden]) or f"[no note contains a word of `{query}`]"

    async def _lines(self, pattern: str) -> tuple[dict[str, list[str]] | None, bool]:
        """Return the lines that match, by the names of their notes, and whether these are all.

        Without notes, return ``None``.
        """
        try:
            result = await self._dispatch(
                "files.search", path=self._folder, pattern=pattern, ignore_case=True, limit=_MAX_MATCHES, ignored=True
            )
        except OpError as error:
            if error.code != "file.missing":
                raise
            return None, True
        found = groupby(result["matches"], key=lambda one: one["path"])
        texts = {path.removesuffix(".md"): [one["text"].strip() for one in lines] for path, lines in found}
        return texts, result["truncated"] is None

    async def _existing(self, op: str, name: str) -> Mapping[str, Any]:
        try:
            return await self._dispatch(op, path=self._path(name))
        except OpError as error:
            if error.code != "file.missing":
                raise
            raise NoteMissing(name) from error

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}.md"

    async def _dispatch(self, op: str, **params: Any) -> Mapping[str, Any]:
        uses = [f"files:path={quote(self._folder)}/*,mode=read|write"]
        result: Mapping[str, Any] = await self._ctx.dispatch(op, params, uses=uses)
        return result
