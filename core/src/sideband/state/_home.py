"""The home folder, which holds all state of a host."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigurationError, StateUnwritable


def default_home() -> Path:
    """Return the folder for all state: ``$SIDEBAND_HOME``, or ``~/.sideband``."""
    configured = os.environ.get("SIDEBAND_HOME")
    if not configured:
        return Path.home() / ".sideband"
    try:
        return Path(configured).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        raise ConfigurationError(
            "SIDEBAND_HOME", f"invalid folder {configured!r}: {error}", source="environment"
        ) from error


def make_home(home: Path) -> None:
    """Create the home folder, or a folder in it, with access for its owner only.

    Raises:
        StateUnwritable: if the folder cannot be created.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StateUnwritable(home, error) from error
