"""The program uv, and the environment that it runs in."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ._errors import InstallerMissing

# Variables that would let uv use another project, interpreter or folder.
_NOT_INHERITED = frozenset({"UV_PROJECT", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_WORKING_DIR", "VIRTUAL_ENV"})


def find_uv() -> Path:
    """Return the path of uv: that of the installed package, otherwise one on the PATH.

    Raises:
        InstallerMissing: if it is in neither.

    Example:
        >>> find_uv().stem
        'uv'
    """
    with suppress(ImportError, FileNotFoundError):
        return Path(import_module("uv").find_uv_bin())
    # A relative folder of PATH depends on the working directory, which may contain untrusted programs.
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    found = shutil.which("uv", path=os.pathsep.join(folders))
    if found is None:
        raise InstallerMissing
    return Path(found)


def uv_environment() -> dict[str, str]:
    """Return the variables of this process, without those that would let uv use another project or interpreter.

    Example:
        >>> "VIRTUAL_ENV" in uv_environment()
        False
    """
    return {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
