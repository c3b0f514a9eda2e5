"""Read the entry points of installed plugins, without importing plugins.

The result is cached in an index file per Python environment, which is valid only for the exact key it was written for.
A damaged, outdated, unreadable or foreign index is ignored, and failing to write it only makes startup slower.

The command line calls this module first, so a hit of the index imports only light parts of the standard library. For
the same reason the index is not written with ``sideband.state``, which is slow to import and flushes to disk.
"""

from __future__ import annotations

import json
import os
import sys
import time
from binascii import crc32
from collections.abc import Sequence

from .._version import __version__
from ._entry_point import EntryPoint, Installed

__all__ = ["find_entry_points", "index_file", "read_installed"]

_FORMAT = 1
_SETTLED = 2_000_000_000  # ns; a more recent change may be followed by another one with the same mtime


def find_entry_points(kind: str | None = None, *, home: str | os.PathLike[str] | None = None) -> tuple[EntryPoint, ...]:
    """Return the entry points of all plugins, or of one kind, sorted by kind, name and distribution.

    Args:
        kind: a kind such as ``op``, ``hook`` or ``skill``; ``None`` for all.
        home: the host's state folder, which contains the index; if ``None``, all metadata is read again.

    Example:
        >>> find_entry_points("no-such-kind")
        ()
    """
    return tuple(found for found in read_installed(home=home).entry_points if kind is None or found.kind == kind)


def read_installed(*, home: str | os.PathLike[str] | None = None) -> Installed:
    """Return the installed entry points, from the index in ``home`` if it is valid, else from the metadata.

    The working directory is ignored even if it is on ``sys.path``, so that an untrusted folder cannot provide plugins.
    """
    path = _search_path()
    key = _key(path)
    if home is not None and (cached := _read_index(home, key)) is not None:
        return cached
    from ._scan import scan

    installed = scan(path)
    if home is not None:
        _write_index(home, key, installed)
    return installed


def _search_path() -> list[str]:
    """Return the distinct folders of ``sys.path`` that may contain plugins, as absolute paths.

    The working directory is included only if it is part of the Python environment.
    """
    path = os.path  # importing pathlib takes longer than the rest of this module
    try:
        here = path.realpath(os.getcwd())  # noqa: PTH109  as above
    except FileNotFoundError:
        here = ""  # the working directory was deleted
    environment = path.join(path.realpath(sys.prefix), "")
    found = dict.fromkeys(path.abspath(entry) for entry in sys.path if entry)
    return [entry for entry in found if path.realpath(entry) != here or here.startswith(environment)]


def _key(path: Sequence[str]) -> list[object]:
    """Return the key for which an index is valid: core, interpreter, and each folder with its mtime."""
    return [__version__, sys.version, sys.prefix, [[entry, _changed(entry)] for entry in path]]


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116  pathlib is slow to import
    except OSError:
        return 0


def index_file(home: str | os.PathLike[str]) -> str:
    """Return the path of the index of this Python environment in ``home``."""
    environment = crc32(os.fsencode(sys.prefix))
    file = f"entry-points-{sys.implementation.cache_tag}-{environment:08x}.json"
    return os.path.join(home, "cache", file)  # noqa: PTH118  pathlib is slow to import


def _read_index(home: str | os.PathLike[str], key: list[object]) -> Installed | None:
    """Return the content of the index for ``key``, or ``None`` if the index is missing or invalid."""
    try:
        with open(index_file(home), "rb") as file:  # noqa: PTH123  pathlib is slow to import
            if not _is_ours(file.fileno()):
                return None
            checksum, _, body = file.read().partition(b"\n")
        if checksum != _checksum(body):
            return None
        index = json.loads(body)
        if index["format"] != _FORMAT or index["key"] != key:
            return None
        found = (EntryPoint(*fields) for fields in index["content"]["entry_points"])
        entry_points = tuple(one._replace(requires=tuple(one.requires)) for one in found)
        return Installed(entry_points, tuple(index["content"]["problems"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_index(home: str | os.PathLike[str], key: list[object], installed: Installed) -> None:
    """Write the index for ``key`` atomically."""
    if not _is_settled(key):
        return
    target = index_file(home)
    partial = f"{target}.{os.urandom(8).hex()}"
    body = json.dumps({"format": _FORMAT, "key": key, "content": installed._asdict()}).encode()
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)  # noqa: PTH103  as above; the mode does not apply to parents
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120  as above
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_checksum(body) + b"\n" + body)
        os.replace(partial, target)  # noqa: PTH105  as above
    except OSError:
        _discard(partial)


def _is_ours(descriptor: int) -> bool:
    """Return whether only this user can write the file, which names modules that will be imported."""
    status = os.fstat(descriptor)
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _is_settled(key: list[object]) -> bool:
    """Return whether all folders of the key changed long enough ago that another change would alter their mtime."""
    folders = key[-1]
    now = time.time_ns()
    return isinstance(folders, list) and all(abs(now - changed) > _SETTLED for _, changed in folders)


def _checksum(body: bytes) -> bytes:
    return b"%08x" % crc32(body)


def _discard(partial: str) -> None:
    try:  # noqa: SIM105  contextlib is slow to import
        os.unlink(partial)  # noqa: PTH108  as above
    except OSError:
        pass
