"""Sanitize untrusted text for a prompt: remove invisible characters, and escape it so that it cannot end its block."""

from __future__ import annotations

import html

_KEPT = frozenset("\n\t\u200c\u200d")  # the joiners belong to scripts and to emoji


def visible(text: str) -> str:
    r"""Remove characters that are invisible to people but visible to models.

    Control characters, bidirectional overrides, tags and the like are removed; unusual spaces become spaces, and line
    ends become ``\n``.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    plain = lines.isascii() and lines.replace("\n", "").replace("\t", "").isprintable()
    return lines if plain else "".join(map(_shown, lines))


def _shown(character: str) -> str:
    if character in _KEPT:
        return character
    if character.isprintable():
        # variation selectors without a use in fonts, which can hide text
        return "" if "\U000e0100" <= character <= "\U000e01ef" else character
    return " " if character.isspace() else ""


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
