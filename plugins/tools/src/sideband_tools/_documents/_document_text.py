"""Read a document in a process of its own, with limits.

The libraries that read documents are memory-safe: all that a hostile document can do with them is to use much time and
memory. So a process with limits of the kernel suffices, which is killed when its time is over. It inherits neither the
variables nor the descriptors of the host.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from attrs import frozen

from .._errors import DocumentUnreadable

_READER = Path(__file__).with_name("_reader.py")
_CHARACTERS = 4_000_000


@frozen
class ReaderLimits:
    """What reading one document may take.

    Attributes:
        seconds: the duration, and the time of the processor.
        memory: the address space of the process in bytes.
    """

    seconds: float = 20.0
    memory: int = 1 << 30


_LIMITS = ReaderLimits()


@frozen
class DocumentText:
    """The text of a document.

    Attributes:
        text: the text.
        title: the title of a web page, if it has one.
    """

    text: str
    title: str = ""


async def page_text(html: bytes, url: str, *, limits: ReaderLimits = _LIMITS) -> DocumentText:
    """Return the text of a web page as Markdown, without navigation, scripts and what is hidden.

    Args:
        html: the page.
        url: its address, to which its links are relative.
        limits: what reading it may take.

    Raises:
        DocumentUnreadable: if reading it takes too much time or memory.
    """
    answer = await _answer("the page", html, {"kind": "page", "url": url, "characters": _CHARACTERS}, limits)
    return DocumentText(_sendable(answer["text"]), _sendable(answer["title"]))


async def pdf_text(
    name: str,
    data: bytes,
    *,
    first: int = 1,
    last: int | None = None,
    characters: int,
    limits: ReaderLimits = _LIMITS,
) -> DocumentText:
    """Return the text of pages of a PDF file, each below its number.

    Args:
        name: the name of the file, for messages.
        data: the file.
        first, last: the numbers of the pages, counted from 1; by default all.
        characters: after this many characters, no other page is read.
        limits: what reading it may take.

    Raises:
        DocumentUnreadable: if it is damaged or protected, has no such page, or takes too much time or memory.
    """
    request = {"kind": "pdf", "first": first, "last": last, "characters": characters}
    answer = await _answer(f"`{name}`", data, request, limits)
    pages, count = answer["pages"], answer["count"]
    if not pages:
        wanted = f"{first:,}" if last in (None, first) else f"{first:,} to {last:,}"
        raise DocumentUnreadable(f"`{name}`", f"it has {count:,} pages; you requested {wanted}")
    shown = [f"[page {number} of {count}]\n{_page(text)}" for number, text in enumerate(pages, first)]
    following = first + len(pages)
    if following <= min(last or count, count):
        shown.append(f"[continue with the pages {following}-{min(last or count, count)}]")
    return DocumentText("\n\n".join(shown))


def _page(text: str) -> str:
    return _sendable(text).strip() or "(no text: it may be an image)"


def _sendable(text: str) -> str:
    """Return a text without unpaired surrogates, which cannot be sent."""
    return text.encode(errors="replace").decode()


async def _answer(name: str, data: bytes, request: Mapping[str, Any], limits: ReaderLimits) -> Mapping[str, Any]:
    head = json.dumps({**request, "seconds": limits.seconds, "memory": limits.memory}).encode() + b"\n"
    process = subprocess.Popen(  # noqa: S603, ASYNC220  runs this package's own program; a fork does not block
        [sys.executable, "-I", str(_READER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_killed_on_cancel, process)
        with anyio.CancelScope(shield=True):  # the thread ends with the process, and reaps it
            output = await anyio.to_thread.run_sync(_output, process, head + data, limits.seconds)
        tasks.cancel_scope.cancel()
    await checkpoint_if_cancelled()
    if process.returncode:
        problem = f"reading it takes more than {limits.seconds:g} seconds or {limits.memory >> 20:,} MiB of memory"
        raise DocumentUnreadable(name, problem)
    answer: Mapping[str, Any] = json.loads(output)
    if "problem" in answer:
        raise DocumentUnreadable(name, answer["problem"])
    return answer


async def _killed_on_cancel(process: subprocess.Popen[bytes]) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        process.kill()


def _output(process: subprocess.Popen[bytes], data: bytes, seconds: float) -> bytes:
    """Return what a process writes for this input. After this time, it is killed."""
    with process:
        try:
            return process.communicate(data, timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            return b""
