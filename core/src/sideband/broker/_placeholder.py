"""The placeholder that stands where a secret was."""

from __future__ import annotations


def placeholder(name: str = "") -> str:
    """Return what is written in the place of a secret value.

    Args:
        name: the secret's name; empty where a value is hidden for its key, or belongs to several secrets.

    Example:
        >>> placeholder("github"), placeholder()
        ('[redacted:github]', '[redacted]')
    """
    return f"[redacted:{name}]" if name else "[redacted]"
