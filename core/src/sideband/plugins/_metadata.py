"""The one seam on installed metadata: which entry points there are, found without importing any of them.

On a hit of the index only light parts of the standard library are imported, since the command line comes through
here before anything else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from .._version import __version__
from ._entry_point import EntryPoint, Installed
from ._index import read_index, write_index

__all__ = ["find_entry_points", "read_installed"]


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
    if home is not None and (kept := read_index(home, key)) is not None:
        try:
            return _decode(kept)
        except (TypeError, ValueError, KeyError):
            pass  # written by another version of this module: as good as none
    from ._scan import scan

    installed = scan(path)
    if home is not None:
        write_index(home, key, _encode(installed))
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


def _encode(installed: Installed) -> dict[str, object]:
    return {"entry_points": [list(found) for found in installed.entry_points], "problems": list(installed.problems)}


def _decode(kept: dict[str, Any]) -> Installed:
    found = (EntryPoint(*fields) for fields in kept["entry_points"])
    entry_points = tuple(one._replace(requires=tuple(one.requires)) for one in found)
    return Installed(entry_points, tuple(kept["problems"]))
