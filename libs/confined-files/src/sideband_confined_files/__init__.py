"""Files below one folder, named by others: nothing they name leads out, and nothing is ever half-written.

Every path is walked step by step with descriptors, and no step follows a link, so that swapping a folder for a link
between a check and its use gains nothing. Only ordinary files are read. What is written is there whole or not at all,
for its owner only. All waits are cancellable; what blocks runs in threads.

``normal_path`` checks paths below a folder of the host's own; ``resolved_path`` makes those elsewhere absolute, to be
compared with a grant and then walked from ``/``.
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
