"""The op family `files` of sideband: files in granted places.

The ops are used by name (`files.read`); what is here is for code that catches their errors or builds on their models.
What is wrong with a path or a file is told by the errors of `sideband_confined_files`.
"""

from ._config import Config
from ._errors import FilesError, FilesNotText, FilesTooMany
from ._models import Deleted, Entries, Entry, FolderMade, Found, Moved, Read, Restored, Status, Written
from ._scope import FilesScope
from ._version import __version__

__all__ = [
    "Config",
    "Deleted",
    "Entries",
    "Entry",
    "FilesError",
    "FilesNotText",
    "FilesScope",
    "FilesTooMany",
    "FolderMade",
    "Found",
    "Moved",
    "Read",
    "Restored",
    "Status",
    "Written",
    "__version__",
]
