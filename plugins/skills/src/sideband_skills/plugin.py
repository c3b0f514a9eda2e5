"""Registration of the loader ``skills``."""

from __future__ import annotations

from sideband.loading import SkillLoader

from ._config import Config
from ._folder_loader import FolderLoader

__all__ = ["Config", "sideband_loaders"]


def sideband_loaders(config: Config) -> list[SkillLoader]:
    """Register the loader."""
    return [FolderLoader(config)]
