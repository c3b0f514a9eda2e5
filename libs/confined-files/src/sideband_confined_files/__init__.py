"""Access to files below one folder whose paths are untrusted: no path leads out, and writes are atomic.

Every path is walked component by component with file descriptors, and no component follows a symbolic link, so
replacing a folder with a link between check and use gains an attacker nothing. Only regular files are read. Files are
written completely or not at all, and are readable by their owner only. All waits can be cancelled; blocking calls run
in threads.

``normal_path`` validates a path below a folder that the host owns; ``resolved_path`` makes any other path absolute, to
be compared with a grant and then walked from ``/``.
"""

from ._errors import FileChanged, FileError, FileFailed, FileMissing, FileRefused, FileTaken, FileTooLarge
from ._folder import ConfinedFolder
from ._listing import EntryKind, FolderEntry, Listing
from ._paths import normal_path, resolved_path
from ._reading import FileReader
from ._version import __version__
from ._writing import NewFile

__all__ = [
    "ConfinedFolder",
    "EntryKind",
    "FileChanged",
    "FileError",
    "FileFailed",
    "FileMissing",
    "FileReader",
    "FileRefused",
    "FileTaken",
    "FileTooLarge",
    "FolderEntry",
    "Listing",
    "NewFile",
    "__version__",
    "normal_path",
    "resolved_path",
]
