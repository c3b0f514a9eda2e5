"""Texts of models, tools and files in the Markdown that clients show, so that none can leave its place."""

from __future__ import annotations

import re

from acp.schema import ContentToolCallContent, TextContentBlock
from sideband.rendering import render

_TICKS = re.compile("`+")
_LONGEST_SPAN = 120


def span(text: str, longest: int = _LONGEST_SPAN) -> str:
    """Return a text as code within a line, cut if it is long."""
    shown = render(text)
    shown = shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
    mark = "`" * (_longest_run(shown) + 1)
    space = " " if not shown or "`" in (shown[0], shown[-1]) else ""
    return f"{mark}{space}{shown}{space}{mark}"


def fenced(text: str) -> str:
    """Return a text as a block of code. Nothing in it can end the block."""
    shown = render(text, prose=True)
    mark = "`" * max(3, _longest_run(shown) + 1)
    return f"{mark}\n{shown.removesuffix(chr(10))}\n{mark}"


def block(text: str) -> TextContentBlock:
    """Return a text as content."""
    return TextContentBlock(type="text", text=text)


def shown(text: str) -> ContentToolCallContent:
    """Return a text as a block of code in a tool call."""
    return ContentToolCallContent(type="content", content=block(fenced(text)))


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
