"""Temporary folders whose names contain the host's process ID, so that leftovers of a killed host can be removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path


def make_folder(prefix: str) -> Path:
    """Create a temporary folder that only the host's user can access."""
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-"))


def remove_leftovers(prefix: str) -> None:
    """Remove the folders of hosts that no longer exist."""
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*-*"):
        host = path.name.removeprefix(prefix).partition("-")[0]
        with contextlib.suppress(OSError):
            if host.isdigit() and path.lstat().st_uid == os.geteuid() and not Path("/proc", host).exists():
                shutil.rmtree(path, ignore_errors=True)
