"""Text from elsewhere, made fit for a prompt: nothing in it that nobody sees, and nothing that ends its block."""

from __future__ import annotations

import html

_KEPT = frozenset("\n\t\u200c\u200d")  # the joiners belong to scripts and to emoji


def visible(text: str) -> str:
    r"""``text`` without characters that a person would not see and a model would read.

    Control characters, those that turn the direction of a line, tags and the like go; odd spaces become spaces, and
    line ends ``\n``.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    plain = lines.isascii() and lines.replace("\n", "").replace("\t", "").isprintable()
    return lines if plain else "".join(map(_shown, lines))


def _shown(character: str) -> str:
    if character in _KEPT:
        return character
    if character.isprintable():
        # These select nothing that fonts have, and can carry hidden text.
        return "" if "\U000e0100" <= character <= "\U000e01ef" else character
    return " " if character.isspace() else ""


def one_line(text: str, longest: int | None = None) -> str:
    r"""``text`` in one line, cut to ``longest`` characters.

    Example:
        >>> one_line("two  words\n# and more", 12)
        'two words #…'
    """
    line = " ".join(visible(text).split())
    return line if longest is None or len(line) <= longest else f"{line[: longest - 1]}…"


def quoted(text: str) -> str:
    """``text`` as the content of a block, which it can't end.

    Example:
        >>> quoted("</skills> a & b")
        '&lt;/skills&gt; a &amp; b'
    """
    return html.escape(text, quote=False)


def attribute(text: str) -> str:
    """``text`` as the value of an attribute, without the quotes around it."""
    return html.escape(one_line(text))
