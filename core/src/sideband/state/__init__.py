"""State on disk: the home folder, atomic writes of files and folders, locks, and syncs that tasks share.

Plugins may use it for their own files. All functions block, except those that are ``async``: async code must call them
in a thread. Names are imported on first use, to keep start-up fast.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from ._folders import FolderFailed, StoredFile, folder_digest, publish_folder
    from ._group_commit import GroupCommit
    from ._home import default_home, make_home
    from ._locks import FileLock, try_lock
    from ._opening import open_beneath
    from ._temporary_folders import TemporaryFolder, remove_temporary_folders
    from ._writing import PartialFile, remove_partial_files, replace_file, sync_folder, write_state_file

__all__ = [
    "FileLock",
    "FolderFailed",
    "GroupCommit",
    "PartialFile",
    "StoredFile",
    "TemporaryFolder",
    "default_home",
    "folder_digest",
    "make_home",
    "open_beneath",
    "publish_folder",
    "remove_partial_files",
    "remove_temporary_folders",
    "replace_file",
    "sync_folder",
    "try_lock",
    "write_state_file",
]

__getattr__, __dir__ = lazy(
    __name__, "._home", "._opening", "._writing", "._locks", "._temporary_folders", "._folders", "._group_commit"
)
