"""Cached data of a Python environment in the home folder, each of it valid only for the exact key it was written for.

A damaged, outdated, unreadable or foreign file is ignored, and failing to write it only makes the next start slower.

The command line reads such files first, so this module imports only light parts of the standard library. For the same
reason they are not written with ``sideband.state``, which is slow to import and flushes to disk.
"""

from __future__ import annotations

import json
import os
import sys
import time
from binascii import crc32
from collections.abc import Iterable
from typing import Any

_FORMAT = 3
_SETTLED = 2_000_000_000  # ns; a more recent change may be followed by another one with the same mtime


def cache_file(home: str | os.PathLike[str], name: str) -> str:
    """Return the path of the file with this data of this Python environment."""
    environment = crc32(os.fsencode(sys.prefix))
    file = f"{name}-{sys.implementation.cache_tag}-{environment:08x}.json"
    return os.path.join(home, "cache", file)  # noqa: PTH118  pathlib is slow to import


def read_cache(file: str, key: object) -> Any:
    """Return the content that was written for ``key``, or ``None`` if the file is missing, invalid or for another."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  pathlib is slow to import
            if not _is_ours(opened.fileno()):
                return None
            checksum, _, body = opened.read().partition(b"\n")
        if checksum != _checksum(body):
            return None
        data = json.loads(body)
        return data["content"] if (data["format"], data["key"]) == (_FORMAT, key) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def write_cache(file: str, key: object, content: object, *, changed: Iterable[int] = ()) -> None:
    """Write data atomically.

    Args:
        file: the file.
        key: what the data depends on, as data that JSON supports.
        content: the data.
        changed: the times in nanoseconds at which what the data was read from changed. Nothing is written if another
            change may leave one of them as it is.
    """
    now = time.time_ns()
    if any(abs(now - moment) <= _SETTLED for moment in changed):
        return
    partial = f"{file}.{os.urandom(8).hex()}"
    body = json.dumps({"format": _FORMAT, "key": key, "content": content}).encode()
    folder = os.path.dirname(file)  # noqa: PTH120  as above
    try:
        for one in (os.path.dirname(folder), folder):  # noqa: PTH120  as above
            os.makedirs(one, mode=0o700, exist_ok=True)  # noqa: PTH103  as above; the mode does not apply to parents
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(_checksum(body) + b"\n" + body)
        os.replace(partial, file)  # noqa: PTH105  as above
    except OSError:
        _discard(partial)


def _is_ours(descriptor: int) -> bool:
    """Return whether only this user can write the file, which names modules that will be imported."""
    status = os.fstat(descriptor)
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _checksum(body: bytes) -> bytes:
    return b"%08x" % crc32(body)


def _discard(partial: str) -> None:
    try:  # noqa: SIM105  contextlib is slow to import
        os.unlink(partial)  # noqa: PTH108  as above
    except OSError:
        pass
