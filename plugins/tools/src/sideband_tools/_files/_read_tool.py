"""The tool `read`: read lines of a text, or look at an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.messages import ImagePart
from sideband.ops import Level
from sideband.tools import ToolContext, tool

from .._documents import pdf_text
from .._errors import FileNotReadable
from .._places import CallRights, Places
from ._images import image_type, read_image
from ._known_files import remember
from ._models import ReadParams
from ._text import UTF_16, stored_text

_LONGEST_LINE = 2_000
_PDF_CHARACTERS = 30_000
_PDF_BYTES = 64 * 1024 * 1024
_PART_BYTES = 4 * 1024 * 1024


@tool("read", level=Level.MONITORED, read_only=True, resume="replay")
async def read(params: ReadParams, ctx: ToolContext) -> str | ImagePart:
    """Read numbered lines of a text file, the text of a PDF file, or look at an image (PNG, JPEG, GIF, WebP).

    Read a file before you change it. Read several files at once by calling this several times in one step.
    """
    places = Places.of(ctx)
    path, rights = places.path(params.path), places.files("read")
    request = {"path": path, "first": params.first, "count": params.count}
    found = await ctx.dispatch("files.lines", request, **rights)
    if media_type := image_type(found["beginning"]):
        return await read_image(ctx, path, rights, media_type, found["size"])
    if found["beginning"].startswith(b"%PDF-"):
        return await _pdf(ctx, places, path, found["size"], params.pages)
    if found["beginning"].startswith(UTF_16):
        found = await _whole(ctx, path, rights, found, params)
    if found["sha256"] is not None:
        await remember(ctx, path, found["sha256"])
    text = stored_text(found["content"])
    if text is None:
        raise FileNotReadable(places.shown(path), "it is not text")
    return _numbered(text.text, found, params.first, text.encoding)


async def _whole(
    ctx: ToolContext, path: str, rights: CallRights, found: Mapping[str, Any], params: ReadParams
) -> Mapping[str, Any]:
    """Return the requested lines of a file in UTF-16, which is read completely: a line feed is two bytes there."""
    read_ = await ctx.dispatch("files.read", {"path": path, "kind": "bytes"}, **rights)
    text = stored_text(read_["content"])
    if text is None:
        raise FileNotReadable(path, "it is not text")
    lines = text.text.splitlines(keepends=True)
    part = lines[params.first - 1 : params.first - 1 + params.count]
    following = params.first + len(part)
    return {
        **found,
        "content": "".join(part).encode(),
        "count": len(part),
        "next": following if following <= len(lines) else None,
        "sha256": read_["sha256"],
    }


async def _pdf(ctx: ToolContext, places: Places, path: str, size: int, pages: str | None) -> str:
    name, rights = places.shown(path), places.files("read")
    if size > _PDF_BYTES:
        raise FileNotReadable(name, f"it has {size:,} bytes, more than the limit of {_PDF_BYTES:,}")
    data, part = b"", None
    while part is None or part["next"] is not None:
        request = {"path": path, "kind": "bytes", "offset": len(data), "length": _PART_BYTES}
        part = await ctx.dispatch("files.read", request, **rights)
        data += part["content"]
    first, _, last = (pages or "1-100000").partition("-")
    document = await pdf_text(name, data, first=int(first), last=int(last or first), characters=_PDF_CHARACTERS)
    return document.text


def _numbered(text: str, found: Mapping[str, Any], first: int, encoding: str) -> str:
    if not found["count"]:
        return "[the file is empty]" if not found["size"] else f"[the file has fewer than {first} lines]"
    lines = text.split("\n")[: found["count"]]
    shown = "\n".join(f"{number}\t{_line(line)}" for number, line in enumerate(lines, first))
    notes = []
    if found["cut"]:
        notes.append(f"line {first} is longer than shown")
    if found["next"] is not None:
        notes.append(f"continue with line {found['next']} of a file of {found['size']:,} bytes")
    if encoding == "latin-1":
        notes.append("not UTF-8, shown as Latin-1")
    return f"{shown}\n[{'; '.join(notes)}]" if notes else shown


def _line(text: str) -> str:
    hidden = len(text) - _LONGEST_LINE
    return f"{text[:_LONGEST_LINE]} [{hidden:,} characters omitted]" if hidden > 0 else text.rstrip("\r")
