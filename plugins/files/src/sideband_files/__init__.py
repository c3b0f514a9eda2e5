"""The op family `files` of sideband: access to granted files.

Ops are called by name (`files.read`). Import from here to catch their errors or to use their models.
Errors of a path or a file are in `sideband_confined_files`.
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
