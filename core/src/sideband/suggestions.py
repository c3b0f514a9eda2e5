"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to ``name``, or ``None`` if no name is similar enough.

    Example:
        >>> closest("htpp", ["http", "sql"])
        'http'
    """
    from difflib import get_close_matches  # noqa: PLC0415  slow to import, and rarely needed

    found = get_close_matches(name, list(known), n=1)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean `x`?)`` to append to a message about an unknown name, or an empty string.

    Example:
        >>> f"unknown op `htpp.get`{did_you_mean('htpp.get', ['http.get'])}"
        'unknown op `htpp.get` (did you mean `http.get`?)'
    """
    found = closest(name, known)
    return f" (did you mean `{found}`?)" if found else ""
