"""Find and read the files of the configuration."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError

PROJECT_FILE = "sideband.toml"


def find_project_file(project: Path) -> Path | None:
    """Return the project file in a folder or in its nearest parent that has one, or ``None``."""
    folder = project.absolute()
    return next((file for parent in (folder, *folder.parents) if (file := parent / PROJECT_FILE).is_file()), None)


def read_settings(file: Path) -> dict[str, Any]:
    """Return the tables of a file.

    Raises:
        ConfigurationError: if it cannot be read or is not TOML.
    """
    try:
        return parse_settings(file, file.read_bytes())
    except OSError as error:
        raise ConfigurationError(file.name, f"cannot be read: {error.strerror}", source=str(file)) from error


def parse_settings(file: Path, content: bytes) -> dict[str, Any]:
    """Return the tables of a file with this content.

    Raises:
        ConfigurationError: if it is not TOML.
    """
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(file.name, f"invalid TOML: {error}", source=str(file)) from error


def toml_string(text: str) -> str:
    """Return a text as a TOML string.

    Raises:
        ValueError: if it contains bytes that are not UTF-8, which TOML cannot express.
    """
    text.encode()
    # JSON escapes the same characters, except one. Of characters beyond 16 bits, TOML knows no pairs of escapes.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
