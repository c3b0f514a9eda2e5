"""The provider `scripted`: registration."""

from __future__ import annotations

from ._config import Config
from ._provider import FileScripts

__all__ = ["Config", "sideband_providers"]


def sideband_providers() -> list[FileScripts]:
    """Return the provider for script files."""
    return [FileScripts()]
