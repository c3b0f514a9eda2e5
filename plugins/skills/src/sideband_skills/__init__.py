"""The loader ``skills``: reads folders in the open Agent Skills format, without running what is in them."""

from ._loader import FolderLoader

__all__ = ["FolderLoader"]
