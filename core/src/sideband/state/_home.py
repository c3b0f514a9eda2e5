"""The home folder: all state of a host is below it."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import ConfigurationError, StateUnwritable


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
    """Make the folder for all state, or one below it, for its owner only.

    Raises:
        StateUnwritable: it can't be made.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StateUnwritable(home, error) from error
