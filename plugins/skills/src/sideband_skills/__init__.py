"""The loader ``skills``: reads folders in the open Agent Skills format without running their code."""

from ._folder_loader import FolderLoader

__all__ = ["FolderLoader"]
