"""Characters that are invisible to people but visible to models."""

from __future__ import annotations

_KEPT = frozenset("\n\t\u200c\u200d")  # the joiners belong to scripts and to emoji


def visible(text: str) -> str:
    r"""Remove characters that are invisible to people but visible to models.

    Control characters, bidirectional overrides, tags and the like are removed; unusual spaces become spaces, and line
    ends become ``\n``.
    """
    lines = _lines(text)
    return lines if _is_plain(lines) else "".join(map(_shown, lines))


def count_invisible(text: str) -> int:
    r"""Return how many characters ``visible`` removes.

    Example:
        >>> count_invisible("be\u200b kind\r\n")
        1
    """
    lines = _lines(text)
    return 0 if _is_plain(lines) else sum(not _shown(one) for one in lines)


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_plain(lines: str) -> bool:
    return lines.isascii() and lines.replace("\n", "").replace("\t", "").isprintable()


def _shown(character: str) -> str:
    if character in _KEPT:
        return character
    if character.isprintable():
        # variation selectors without a use in fonts, which can hide text
        return "" if "\U000e0100" <= character <= "\U000e01ef" else character
    return " " if character.isspace() else ""
