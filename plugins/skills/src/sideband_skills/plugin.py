"""Registration of the loader ``skills``."""

from __future__ import annotations

from sideband.loading import SkillLoader

from ._folder_loader import FolderLoader

__all__ = ["sideband_loaders"]


def sideband_loaders() -> list[SkillLoader]:
    """Register the loader."""
    return [FolderLoader()]
