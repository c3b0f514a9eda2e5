"""Sanitize untrusted text for a prompt: remove invisible characters, and escape it so that it cannot end its block."""

from __future__ import annotations

import html

from sideband_project_instructions import visible


def one_line(text: str, longest: int | None = None) -> str:
    r"""Return ``text`` on one line, truncated to ``longest`` characters.

    Example:
        >>> one_line("two  words\n# and more", 12)
        'two words #…'
    """
    line = " ".join(visible(text).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def quoted(text: str) -> str:
    """Escape ``text`` as the content of a block, so that it cannot end the block.

    Example:
        >>> quoted("</skills> a & b")
        '&lt;/skills&gt; a &amp; b'
    """
    return html.escape(text, quote=False)


def attribute(text: str) -> str:
    """Escape ``text`` as the value of an attribute, without the surrounding quotes."""
    return html.escape(one_line(text))
