"""Temporary folders of hosts. A host holds a lock on each of its own, so leftovers of killed hosts can be removed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sideband.state import TemporaryFolder, remove_temporary_folders
from sideband.workers import WorkerStartFailed


def make_folder(prefix: str) -> TemporaryFolder:
    """Create a temporary folder that only the host's user can access. The caller must remove it."""
    return TemporaryFolder.make(_parent(), prefix)


def remove_leftovers(prefix: str) -> None:
    """Remove the folders of hosts that no longer exist."""
    remove_temporary_folders(_parent(), prefix)


def _parent() -> Path:
    """Return the folder of all temporary files. Raises ``WorkerStartFailed`` if none can be written."""
    try:
        return Path(tempfile.gettempdir()).resolve()
    except FileNotFoundError as error:
        hint = "set TMPDIR to a writable folder, or mount one (Docker and Podman: --tmpfs /tmp)"
        raise WorkerStartFailed("no temporary folder can be written", hint=hint) from error
