"""Small owner-only files of the host's state: written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import ConfigurationError, StateUnwritable

__all__ = ["default_home", "make_home", "write_atomically"]


def default_home() -> Path:
    """The folder for all state: ``$SIDEBAND_HOME``, or ``~/.sideband``."""
    configured = os.environ.get("SIDEBAND_HOME")
    if not configured:
        return Path.home() / ".sideband"
    try:
        return Path(configured).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        raise ConfigurationError(
            "SIDEBAND_HOME", f"{configured!r} is no folder: {error}", source="environment"
        ) from error


def make_home(home: Path) -> None:
    """Make the folder for all state, for its owner only.

    Raises:
        StateUnwritable: it can't be made.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StateUnwritable(home, error) from error


def write_atomically(path: Path, text: str) -> None:
    """Replace ``path`` by a file with this text that only its owner can read; the old one stays until then.

    Raises:
        StateUnwritable: it could not be written; what was there is untouched.
    """
    make_home(path.parent)
    try:
        _write(path, text)
    except OSError as error:
        raise StateUnwritable(path, error) from error


def _write(path: Path, text: str) -> None:
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
