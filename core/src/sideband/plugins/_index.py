"""The kept index of entry points: one small file per Python environment, true only for the exact key it was made for.

It is a cache and nothing else: damaged, outdated, unreadable or not ours, it counts as missing, and a folder that
can't be written to just leaves every start a little slower.

It is written here and not by ``sideband.state``: the start of every command would pay for what that imports, and for
syncing what may as well be lost.
"""

from __future__ import annotations

import json
import os
import sys
import time
from binascii import crc32
from typing import Any

__all__ = ["index_file", "read_index", "write_index"]

_FORMAT = 1
_SETTLED = 2_000_000_000  # ns; a folder changed less long ago may change again without its time of change moving


def index_file(home: str | os.PathLike[str]) -> str:
    """Where the index of this Python environment is kept under ``home``."""
    environment = crc32(os.fsencode(sys.prefix))
    file = f"entry-points-{sys.implementation.cache_tag}-{environment:08x}.json"
    return os.path.join(home, "cache", file)  # noqa: PTH118  pathlib would cost the start


def read_index(home: str | os.PathLike[str], key: list[object]) -> dict[str, Any] | None:
    """What was kept for ``key``, or ``None`` if there is nothing that can be believed."""
    try:
        with open(index_file(home), "rb") as file:  # noqa: PTH123  pathlib would cost the start
            if not _is_ours(file.fileno()):
                return None
            checksum, _, body = file.read().partition(b"\n")
        if checksum != _checksum(body):
            return None
        kept = json.loads(body)
        if kept["format"] != _FORMAT or kept["key"] != key or not isinstance(kept["content"], dict):
            return None
        return dict(kept["content"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_index(home: str | os.PathLike[str], key: list[object], content: dict[str, object]) -> None:
    """Keep ``content`` for ``key``, whole or not at all."""
    if not _is_settled(key):
        return
    target = index_file(home)
    partial = f"{target}.{os.urandom(8).hex()}"
    body = json.dumps({"format": _FORMAT, "key": key, "content": content}).encode()
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
