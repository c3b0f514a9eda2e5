"""Temporary folders, named so that a later host can tell which of them a killed host has left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path


def make_folder(prefix: str) -> Path:
    """A new folder of this host, that only its user can read."""
    return Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-"))


def remove_leftovers(prefix: str) -> None:
    """Remove what hosts that were killed meanwhile have left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*-*"):
        host = path.name.removeprefix(prefix).partition("-")[0]
        with contextlib.suppress(OSError):
            if host.isdigit() and path.lstat().st_uid == os.geteuid() and not Path("/proc", host).exists():
                shutil.rmtree(path, ignore_errors=True)
