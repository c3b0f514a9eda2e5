"""Names of files as models see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sideband.rendering import render


def entry_line(entry: Mapping[str, Any]) -> str:
    """Return the line for a name: folders end with a slash, files have their size. No name makes two lines.

    Example:
        >>> (
        ...     entry_line({"name": "src", "kind": "folder", "size": 0}),
        ...     entry_line({"name": "a", "kind": "file", "size": 3}),
        ... )
        ('src/', 'a (3 bytes)')
    """
    kind, name = entry["kind"], render(entry["name"])
    if kind == "folder":
        return f"{name}/"
    return f"{name} ({entry['size']:,} bytes)" if kind == "file" else f"{name} ({kind})"
