"""The op family `files` of sideband: access to granted files.

Ops are called by name (`files.read`). Import from here to catch their errors or to use their models.
Errors of a path or a file are in `sideband_confined_files`.
"""

from ._config import Config
from ._errors import FilesError, FilesNotText, FilesPatternInvalid, FilesTooMany
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
from ._text_models import FileLinesResult, FileSearchResult, LineMatch
from ._version import __version__

__all__ = [
    "Config",
    "FileDeleteResult",
    "FileFindResult",
    "FileLinesResult",
    "FileListEntry",
    "FileListResult",
    "FileMoveResult",
    "FileReadResult",
    "FileRestoreResult",
    "FileSearchResult",
    "FileStatus",
    "FileWriteResult",
    "FilesError",
    "FilesNotText",
    "FilesPatternInvalid",
    "FilesScope",
    "FilesTooMany",
    "FolderMakeResult",
    "LineMatch",
    "__version__",
]
