"""Imports httpx without its command line."""

from __future__ import annotations

import sys

_COMMAND_LINE = "httpx._main"


def import_httpx() -> None:
    """Import httpx without its command line, which takes 4 MB where click, rich and pygments are installed.

    ``httpx.main`` is then the function of httpx for environments without these packages.
    """
    if "httpx" in sys.modules:
        return
    sys.modules[_COMMAND_LINE] = None  # type: ignore[assignment]  # the documented way to refuse an import
    try:
        import httpx  # noqa: F401, PLC0415  slow to import; only requests need it
    finally:
        del sys.modules[_COMMAND_LINE]
