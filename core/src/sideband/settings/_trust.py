"""Trust: the files of others that the user accepts with their current content, in ``trust.toml``.

A file is trusted by its digest, so a changed file must be trusted again.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ..errors import ConfigurationError, StateUnwritable
from ..state import FileLock, make_home, write_state_file
from ._files import PROJECT_FILE, find_project_file, read_settings, toml_string

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


def trust_plugins(home: Path, files: Iterable[Path]) -> Mapping[str, str]:
    """Trust files with their current content as plugins. If one cannot be trusted, no file is.

    A changed file must be trusted again.

    Args:
        home: the host's state folder.
        files: the files, which ``[policy.files]`` may then name.

    Returns:
        The SHA-256 of each file, by its path as hosts use it.

    Raises:
        PluginFileInvalid: if one does not exist, is not a regular file of at most 1 MiB, or is not plain UTF-8.
        StateUnwritable: if the trust cannot be stored.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "notes.py").write_text("")
        >>> list(trust_plugins(folder / "home", [folder / "notes.py"]).values())[0][:12]
        'e3b0c44298fc'
    """
    from ..plugins._local_files import local_path, read_plugin_file  # noqa: PLC0415  for few commands only

    paths = [local_path(file) for file in files]
    digests = {path: hashlib.sha256(read_plugin_file(path)).hexdigest() for path in paths}
    with _changing(home, "plugins") as trusted:
        trusted.update(digests)
    return digests


def distrust_plugins(home: Path, files: Iterable[Path]) -> Mapping[str, bool]:
    """Trust files no longer as plugins. Running hosts keep what they loaded.

    Returns:
        Whether each was trusted, by its path as hosts use it.

    Raises:
        StateUnwritable: if the change cannot be stored.

    Example:
        >>> from tempfile import mkdtemp
        >>> list(distrust_plugins(Path(mkdtemp()), [Path("notes.py")]).values())
        [False]
    """
    from ..plugins._local_files import local_path  # noqa: PLC0415  for few commands only

    with _changing(home, "plugins") as trusted:
        return {path: trusted.pop(path, None) is not None for path in map(local_path, files)}


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
            lines += [f"[{name}]", *(_line(path, digest) for path, digest in sorted(digests.items()))]
        write_state_file(home / _FILE, "\n".join([*lines, ""]))


def _line(path: str, digest: str) -> str:
    try:
        return f"{toml_string(path)} = {toml_string(digest)}"
    except ValueError as error:
        hint = "rename it, then trust it again"
        raise ConfigurationError(Path(path).name, "its path is not UTF-8", source=path, hint=hint) from error


def _digest(file: Path) -> str:
    # Reading a pipe never ends, and other users can put one into a shared parent folder.
    return hashlib.sha256(file.read_bytes() if file.is_file() else b"").hexdigest()
