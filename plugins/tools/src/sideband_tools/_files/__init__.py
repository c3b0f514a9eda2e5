"""Tools that read and change the files in the places of an agent."""

from ._edit_tool import edit
from ._glob_tool import glob
from ._grep_tool import grep
from ._image_tool import image
from ._list_tool import list_
from ._read_tool import read
from ._write_tool import write

__all__ = ["edit", "glob", "grep", "image", "list_", "read", "write"]
