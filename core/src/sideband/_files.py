"""Small owner-only files of the host's state: written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["default_home", "write_atomically"]


def default_home() -> Path:
    """The folder for all state: ``$SIDEBAND_HOME``, or ``~/.sideband``."""
    configured = os.environ.get("SIDEBAND_HOME")
    return Path(configured).expanduser().absolute() if configured else Path.home() / ".sideband"


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` by a file with this text that only its owner can read; the old one stays until then.

    Raises:
        OSError: it could not be written; what was there is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
