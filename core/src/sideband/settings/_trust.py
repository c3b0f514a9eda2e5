"""Trust: the files of others that the user accepts with their current content, in ``trust.toml``.

A file is trusted by its digest, so a changed file must be trusted again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ..errors import ConfigurationError, StateUnwritable
from ..plugins._local_files import local_path, read_plugin_file
from ..state import FileLock, make_home, write_state_file
from ._files import PROJECT_FILE, find_project_file, read_settings

_FILE = "trust.toml"
_Table = Literal["projects", "plugins"]
_TABLES: tuple[_Table, ...] = ("projects", "plugins")


def trust_project(home: Path, project: Path) -> Path:
    """Trust the project file of ``project`` with its current content; a modified file must be trusted again.

    A folder without a project file is trusted like one with an empty file: until it, or a parent folder, has another.

    Raises:
        ConfigurationError: if the file is in a parent folder, such as ``/tmp``, and another user may have put it there.
    """
    folder = project.absolute()
    file = find_project_file(folder) or folder / PROJECT_FILE
    if file.parent != folder and file.stat().st_uid not in (0, os.geteuid(), folder.stat().st_uid):
        hint = f"read it; to trust it, run a command with --trust in {file.parent}"
        raise ConfigurationError(file.name, "belongs to another user", source=str(file), hint=hint)
    with _changing(home, "projects") as trusted:
        trusted[str(file)] = _digest(file)
    return file


def trusted_project(home: Path, folder: Path) -> Path | None:
    """Return the nearest folder with a project file, from ``folder`` upwards, if its current content is trusted.

    Without a project file, return the nearest folder that was trusted without one.
    """
    file = find_project_file(folder)
    files = [file] if file else [parent / PROJECT_FILE for parent in (folder.absolute(), *folder.absolute().parents)]
    try:
        trusted = trusted_digests(home, "projects")
        return next((one.parent for one in files if trusted.get(str(one)) == _digest(one)), None)
    except OSError:
        return None


def trust_plugin(home: Path, file: Path) -> str:
    """Trust a file with its current content as a plugin, and return its SHA-256. A changed file must be trusted again.

    Args:
        home: the host's state folder.
        file: the file, which ``[policy.files]`` may then name.

    Raises:
        PluginFileInvalid: if it does not exist, or is not a regular file of at most 1 MiB.
        StateUnwritable: if the trust cannot be stored.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "notes.py").write_text("")
        >>> trust_plugin(folder / "home", folder / "notes.py")[:12]
        'e3b0c44298fc'
    """
    path = local_path(file)
    digest = hashlib.sha256(read_plugin_file(path)).hexdigest()
    with _changing(home, "plugins") as trusted:
        trusted[path] = digest
    return digest


def distrust_plugin(home: Path, file: Path) -> bool:
    """Trust a file no longer as a plugin, and return whether it was trusted. Running hosts keep what they loaded.

    Raises:
        StateUnwritable: if the change cannot be stored.

    Example:
        >>> from tempfile import mkdtemp
        >>> distrust_plugin(Path(mkdtemp()), Path("notes.py"))
        False
    """
    with _changing(home, "plugins") as trusted:
        return trusted.pop(local_path(file), None) is not None


def trusted_digests(home: Path, table: _Table) -> dict[str, str]:
    """Return the SHA-256 of each trusted file by path.

    Raises:
        ConfigurationError: if ``trust.toml`` is damaged.
    """
    file = home / _FILE
    found = read_settings(file).get(table, {}) if file.is_file() else {}
    if not isinstance(found, dict):
        hint = "delete the file, and trust your projects and plugins again"
        raise ConfigurationError(table, "expected a table", source=str(file), hint=hint)
    return found


@contextmanager
def _changing(home: Path, table: _Table) -> Iterator[dict[str, str]]:
    """Write what the block changes in a table, while no other process does."""
    make_home(home)
    with FileLock(home / "trust.lock") as lock:
        try:
            lock.acquire(math.inf)
        except OSError as error:
            raise StateUnwritable(home / _FILE, error) from error
        tables = {name: trusted_digests(home, name) for name in _TABLES}
        yield tables[table]
        lines = [f"# changed on {datetime.now(UTC):%Y-%m-%d}"]
        for name, digests in tables.items():
            # JSON strings are valid TOML.
            entries = (f"{json.dumps(path)} = {json.dumps(digest)}" for path, digest in sorted(digests.items()))
            lines += [f"[{name}]", *entries]
        write_state_file(home / _FILE, "\n".join([*lines, ""]))


def _digest(file: Path) -> str:
    # Reading a pipe never ends, and other users can put one into a shared parent folder.
    return hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest()
