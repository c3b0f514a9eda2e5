"""Access to files below one folder whose paths are untrusted: no path leads out, and writes are atomic.

Every path is walked component by component with file descriptors, and no component follows a symbolic link, so
replacing a folder with a link between check and use gains an attacker nothing. Only regular files are read. Files are
written completely or not at all, and are readable by their owner only. All waits can be cancelled; blocking calls run
in threads.

``ConfinedFolder.folders`` identifies the folders on a path, and ``ConfinedFolder.through`` restricts all access to the
last of them, so that an effect is undone where it happened.

``normal_path`` validates a path below a folder that the host owns; ``resolved_path`` makes any other path absolute, to
be compared with a grant and then walked from ``/``.
"""

from ._errors import (
    FileChanged,
    FileError,
    FileFailed,
    FileMissing,
    FileRefused,
    FileReplaced,
    FileTaken,
    FileTooLarge,
)
from ._folder import ConfinedFolder
from ._listing import EntryKind, FolderEntry, Listing
from ._locks import FolderLocks
from ._paths import normal_path, recorded_path, resolved_path
from ._reading import FileReader
from ._recorded import REPLACED_FOLDERS, RecordedFolders, identity_of
from ._version import __version__
from ._visiting import OpenFolder
from ._writing import NewFile

__all__ = [
    "REPLACED_FOLDERS",
    "ConfinedFolder",
    "EntryKind",
    "FileChanged",
    "FileError",
    "FileFailed",
    "FileMissing",
    "FileReader",
    "FileRefused",
    "FileReplaced",
    "FileTaken",
    "FileTooLarge",
    "FolderEntry",
    "FolderLocks",
    "Listing",
    "NewFile",
    "OpenFolder",
    "RecordedFolders",
    "__version__",
    "identity_of",
    "normal_path",
    "recorded_path",
    "resolved_path",
]
