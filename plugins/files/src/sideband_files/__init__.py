"""The op family `files` of sideband: files in granted places.

The ops are used by name (`files.read`); what is here is for code that catches their errors or builds on their models.
What is wrong with a path or a file is told by the errors of `sideband_confined_files`.
"""

from ._config import Config
from ._errors import FilesError, FilesNotText, FilesTooMany
from ._models import (
    FileDeleteResult,
    FileFindResult,
    FileListEntry,
    FileListResult,
    FileMoveResult,
    FileReadResult,
    FileRestoreResult,
    FileStatus,
    FileWriteResult,
    FolderMakeResult,
)
from ._scope import FilesScope
from ._version import __version__

__all__ = [
    "Config",
    "FileDeleteResult",
    "FileFindResult",
    "FileListEntry",
    "FileListResult",
    "FileMoveResult",
    "FileReadResult",
    "FileRestoreResult",
    "FileStatus",
    "FileWriteResult",
    "FilesError",
    "FilesNotText",
    "FilesScope",
    "FilesTooMany",
    "FolderMakeResult",
    "__version__",
]
