"""The loader ``skills``: reads folders in the open Agent Skills format, without running what is in them."""

from ._folder_loader import FolderLoader

__all__ = ["FolderLoader"]
