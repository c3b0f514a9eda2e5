"""The lock of the Python environment: the exact plugins of a distribution, in ``sideband.lock`` in ``sys.prefix``.

Every command reads it, so this module imports only light parts of the standard library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._errors import LockInvalid

__all__ = ["LOCK_FILE", "Lock", "LockedPackage", "LockedPlugin", "environment_lock", "read_lock"]

LOCK_FILE = "sideband.lock"
"""The name of the lock of an environment or a project."""
FORMAT = 1
CORE = "sideband-core"
_METADATA = ".dist-info/METADATA"
_known: list[tuple[object, Lock]] = []


class LockedPlugin(NamedTuple):
    """One plugin of a lock.

    Attributes:
        kind: the kind, such as ``op``.
        name: the entry-point name.
        value: the value of the entry point.
        api: the version of the plugin API.
        package: the normalized name of the package that provides it.
    """

    kind: str
    name: str
    value: str
    api: int
    package: str

    @property
    def label(self) -> str:
        """``kind.name``."""
        return f"{self.kind}.{self.name}"


class LockedPackage:
    """One package of a lock.

    Attributes:
        name: the normalized name.
        version: the version.
        requires: the normalized names of the packages of the lock that it needs.
        metadata: the path of its file ``METADATA`` beside its modules; empty if it is not for this platform.
    """

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.name = str(entry["name"])
        self.version = str(entry["version"])
        self.requires = tuple(map(str, entry.get("requires", ())))
        self._files = text = str(entry.get("files", ""))
        end = text.find(_METADATA)
        self.metadata = text[text.rfind("\n", 0, end) + 67 : end] + _METADATA if end >= 0 else ""

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The SHA-256 of each installed file by its path; empty if unknown."""
        return parse_hashes(self._files)


class Lock:
    """A lock: the only plugins that a host may load, with the hashes of their files, and the settings of the team.

    Args:
        file: the path of the file.
        data: its content.

    Attributes:
        file: the path of the file.
        settings: the settings that other sources cannot loosen, as in ``sideband.toml``.
        adjustable: the keys, or tables, that other sources may set nevertheless.
        plugins: the plugins by kind and name.

    Raises:
        LockInvalid: if the content is not that of a lock, or of a newer version.

    Example:
        >>> lock = Lock("sideband.lock", {"version": 1, "plugins": [], "packages": []})
        >>> lock.plugin("op", "http") is None
        True
    """

    def __init__(self, file: str, data: Mapping[str, Any]) -> None:
        self.file = file
        version = data.get("version")
        if version != FORMAT:
            problem = f"its version is {version!r}, and this core reads version {FORMAT}"
            raise _invalid(file, problem)
        try:
            found = [LockedPlugin(*(one[name] for name in LockedPlugin._fields)) for one in data["plugins"]]
            self.settings: Mapping[str, Any] = dict(data.get("settings", {}))
            self.adjustable = tuple(map(str, data.get("dist", {}).get("adjustable", ())))
            found_packages = sorted(map(LockedPackage, data["packages"]), key=lambda one: bool(one.metadata))
            # Of several versions for several platforms, that of this one has files.
            self._packages = {one.name: one for one in found_packages}
            self._deny = dict(self.settings.get("policy", {}).get("deny", {}))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _invalid(file, f"it is damaged ({type(error).__name__}: {error})") from error
        self.plugins = {(one.kind, one.name): one for one in found}
        if len(self.plugins) < len(found) or not {one.package for one in found} <= self._packages.keys():
            raise _invalid(file, "it is damaged: a plugin is listed twice, or its package is missing")

    @property
    def packages(self) -> tuple[str, ...]:
        """The normalized names of all packages."""
        return tuple(self._packages)

    @cached_property
    def core_closure(self) -> frozenset[str]:
        """The core and all packages that it needs, which run before anything can be checked."""
        return frozenset(self.closure(CORE))

    def plugin(self, kind: str, name: str) -> LockedPlugin | None:
        """Return the plugin of this kind and name, or ``None``."""
        return self.plugins.get((kind, name))

    def package(self, name: str) -> LockedPackage:
        """Return a package by its normalized name.

        Raises:
            LockInvalid: if the lock does not contain it.
        """
        try:
            return self._packages[name]
        except KeyError as error:
            raise _invalid(self.file, f"it has no package `{name}`") from error

    def closure(self, name: str) -> Iterator[str]:
        """Yield a package and all packages of the lock that it needs, sorted by their distance."""
        seen = [name] if name in self._packages else []
        for one in seen:
            yield one
            seen += [each for each in self._packages[one].requires if each in self._packages and each not in seen]

    def denial(self, names: Iterable[str]) -> str:
        """Return why a plugin that is not in the lock must not load.

        Args:
            names: its label, name and distribution.
        """
        reasons = (reason for pattern, reason in self._deny.items() for name in names if fnmatchcase(name, pattern))
        return str(next(reasons, f"it is not in the lock of this environment ({self.file})"))


def parse_hashes(text: str) -> dict[str, str]:
    """Return the SHA-256 of each file by path, from lines such as those of ``sha256sum``.

    Raises:
        ValueError: if a line has another form.

    Example:
        >>> list(parse_hashes("0123456789abcdef" * 4 + "  acme/plugin.py"))
        ['acme/plugin.py']
    """
    lines = [line.partition("  ") for line in text.split("\n") if line]
    if not all(len(digest) == 64 and path for digest, _, path in lines):
        raise ValueError("expected lines with a SHA-256 and a path")
    return {path: digest for digest, _, path in lines}


def environment_lock() -> Lock | None:
    """Return the lock of this Python environment, or ``None`` if it is not locked.

    Raises:
        LockInvalid: if there is one that cannot be used. Nothing may then be loaded.
    """
    path = os.path.join(sys.prefix, LOCK_FILE)  # noqa: PTH118  pathlib is slow to import
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _invalid(path, f"it cannot be read: {error.strerror}") from error
    return read_lock(path)


def read_lock(path: str) -> Lock:
    """Return the lock in a file. An unchanged file is read once in a process.

    Raises:
        LockInvalid: if it cannot be read, or is not a lock.
    """
    import tomllib

    try:
        with open(path, "rb") as file:  # noqa: PTH123  as above
            status = os.fstat(file.fileno())
            key = path, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
            if _known and _known[0][0] == key:
                return _known[0][1]
            lock = Lock(path, tomllib.load(file))
    except OSError as error:
        raise _invalid(path, f"it cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _invalid(path, f"it is not TOML: {error}") from error
    _known[:] = [(key, lock)]
    return lock


def _invalid(file: str, problem: str) -> LockInvalid:
    from ._errors import LockInvalid

    return LockInvalid(file, problem)
