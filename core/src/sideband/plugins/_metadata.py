"""The one seam on installed metadata: which entry points there are, found without importing any of them.

What was read is kept in an index: one small file per Python environment, true only for the exact key it was made for.
It is a cache and nothing else: damaged, outdated, unreadable or not ours, it counts as missing, and a folder that
can't be written to just leaves every start a little slower.

It is written here and not by ``sideband.state``: the start of every command would pay for what that imports, and for
syncing what may as well be lost. On a hit of the index only light parts of the standard library are imported, since
the command line comes through here before anything else.
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
_SETTLED = 2_000_000_000  # ns; a folder changed less long ago may change again without its time of change moving


def find_entry_points(kind: str | None = None, *, home: str | os.PathLike[str] | None = None) -> tuple[EntryPoint, ...]:
    """Find the entry points of all plugins, or of one kind, sorted by kind, name and distribution.

    Args:
        kind: ``op``, ``hook``, ``skill``, …; ``None`` for all.
        home: the host's folder for state, which keeps the index that makes this fast; ``None`` reads everything
            afresh.

    Example:
        >>> find_entry_points("no-such-kind")
        ()
    """
    return tuple(found for found in read_installed(home=home).entry_points if kind is None or found.kind == kind)


def read_installed(*, home: str | os.PathLike[str] | None = None) -> Installed:
    """Read what is installed, from the index under ``home`` if it is still true, else from the metadata itself.

    The working directory is left out even if it is on ``sys.path``: a folder that one happens to stand in does not
    get to name plugins.
    """
    path = _search_path()
    key = _key(path)
    if home is not None and (kept := _read_index(home, key)) is not None:
        return kept
    from ._scan import scan

    installed = scan(path)
    if home is not None:
        _write_index(home, key, installed)
    return installed


def _search_path() -> list[str]:
    """The folders of ``sys.path`` that may hold plugins, as absolute paths, each once.

    The working directory counts only when it is part of the Python environment.
    """
    path = os.path  # pathlib would cost the start more than the rest of this module
    try:
        here = path.realpath(os.getcwd())  # noqa: PTH109  as above
    except FileNotFoundError:
        here = ""  # the folder is gone, and so is what may have been in it
    environment = path.join(path.realpath(sys.prefix), "")
    found = dict.fromkeys(path.abspath(entry) for entry in sys.path if entry)
    return [entry for entry in found if path.realpath(entry) != here or here.startswith(environment)]


def _key(path: Sequence[str]) -> list[object]:
    """What must be the same for an index to be true: core, interpreter, and each folder with its time of change."""
    return [__version__, sys.version, sys.prefix, [[entry, _changed(entry)] for entry in path]]


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116  pathlib would cost the start
    except OSError:
        return 0


def index_file(home: str | os.PathLike[str]) -> str:
    """Where the index of this Python environment is kept under ``home``."""
    environment = crc32(os.fsencode(sys.prefix))
    file = f"entry-points-{sys.implementation.cache_tag}-{environment:08x}.json"
    return os.path.join(home, "cache", file)  # noqa: PTH118  pathlib would cost the start


def _read_index(home: str | os.PathLike[str], key: list[object]) -> Installed | None:
    """What was kept for ``key``, or ``None`` if there is nothing that can be believed."""
    try:
        with open(index_file(home), "rb") as file:  # noqa: PTH123  pathlib would cost the start
            if not _is_ours(file.fileno()):
                return None
            checksum, _, body = file.read().partition(b"\n")
        if checksum != _checksum(body):
            return None
        kept = json.loads(body)
        if kept["format"] != _FORMAT or kept["key"] != key:
            return None
        found = (EntryPoint(*fields) for fields in kept["content"]["entry_points"])
        entry_points = tuple(one._replace(requires=tuple(one.requires)) for one in found)
        return Installed(entry_points, tuple(kept["content"]["problems"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_index(home: str | os.PathLike[str], key: list[object], installed: Installed) -> None:
    """Keep what is installed for ``key``, whole or not at all."""
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
    """Whether only this user can have written the file: it names modules that will be imported."""
    status = os.fstat(descriptor)
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _is_settled(key: list[object]) -> bool:
    """Whether every folder of the key changed long enough ago that another change would show."""
    folders = key[-1]
    now = time.time_ns()
    return isinstance(folders, list) and all(abs(now - changed) > _SETTLED for _, changed in folders)


def _checksum(body: bytes) -> bytes:
    return b"%08x" % crc32(body)


def _discard(partial: str) -> None:
    try:  # noqa: SIM105  contextlib would cost the start
        os.unlink(partial)  # noqa: PTH108  as above
    except OSError:
        pass
