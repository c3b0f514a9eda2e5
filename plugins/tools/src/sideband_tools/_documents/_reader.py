"""The program that reads one document, in a process of its own. It imports nothing of sideband.

Standard input is one line of JSON, then the document. Standard output is JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import resource
import sys
import time
from collections.abc import Mapping
from html import unescape
from typing import Any

_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_SEARCHED = 65_536
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)
# What a person who reads the page does not look at.
_NOT_CONTENT = ["svg", "canvas", "iframe", "object", "embed", "[aria-hidden=true]"]


def main() -> None:
    """Read the request and the document, and write the answer."""
    request = json.loads(sys.stdin.buffer.readline())
    _limit(request["memory"], request["seconds"])
    data = sys.stdin.buffer.read()
    try:
        answer = {"page": _page, "pdf": _pdf}[request["kind"]](data, request)
    except MemoryError:
        raise SystemExit(1) from None
    except Exception as error:  # noqa: BLE001  the libraries do not say what they raise for damaged documents
        answer = {"problem": f"it is damaged ({error})"[:300]}
    sys.stdout.buffer.write(json.dumps(answer).encode())


def _limit(memory: int, seconds: float) -> None:
    """Limit this process. Its libraries are loaded later, so that these limits hold for them too."""
    limits = {"AS": memory, "CPU": math.ceil(seconds), "CORE": 0, "FSIZE": 0, "NOFILE": 64}
    for name, value in limits.items():
        with contextlib.suppress(OSError, ValueError):  # macOS has no limit of the address space
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def _page(data: bytes, request: Mapping[str, Any]) -> dict[str, Any]:
    import html_to_markdown as library  # noqa: PLC0415  after the limits are set

    html = _decoded(data)
    options = library.ConversionOptions(
        extract_metadata=False,
        skip_images=True,
        max_depth=500,
        base_url=request["url"],
        exclude_selectors=_NOT_CONTENT,
    )
    text = library.convert(html, options).content or ""
    title = _TITLE.search(html[:_SEARCHED])
    return {"text": text[: request["characters"]], "title": " ".join(unescape(title[1]).split()) if title else ""}


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    declared = _CHARSET.search(data[:_SEARCHED])
    try:
        return data.decode(declared[1].decode() if declared else "cp1252", errors="replace")
    except (LookupError, ValueError):
        return data.decode("cp1252", errors="replace")


def _pdf(data: bytes, request: Mapping[str, Any]) -> dict[str, Any]:
    import pypdf  # noqa: PLC0415  after the limits are set

    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"problem": "it is protected with a password"}
    count = len(reader.pages)
    pages: list[str] = []
    room, until = request["characters"], time.monotonic() + request["seconds"] / 2
    for number in range(request["first"], min(request["last"] or count, count) + 1):
        if pages and (room <= 0 or time.monotonic() > until):
            break
        text = reader.pages[number - 1].extract_text()
        pages.append(text)
        room -= len(text)
    return {"pages": pages, "count": count}


if __name__ == "__main__":
    main()
