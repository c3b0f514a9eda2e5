"""The placeholder for redacted secrets."""

from __future__ import annotations


def placeholder(name: str = "") -> str:
    """Return the text that replaces a secret value.

    Args:
        name: the name of the secret. Empty if a value is hidden because of its key, or if it contains several secrets.

    Example:
        >>> placeholder("github"), placeholder()
        ('[redacted:github]', '[redacted]')
    """
    return f"[redacted:{name}]" if name else "[redacted]"
