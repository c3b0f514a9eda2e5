"""Texts of plugins, users and files, which may contain lone surrogates."""

from __future__ import annotations


def whole_characters(text: str) -> str:
    """Replace lone surrogates, which neither JSON nor terminals support: no model would take the conversation again."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
