"""Parsed skills in the home folder, so that the next start parses only what changed.

The file has the skills as JSON, then an index as JSON, then the place and checksum of the index. A skill is found by
its folder and used only if each file that was parsed is the same one, with the same size and times; the files are
listed each time. The file decides no rights: it has what the skill's files contain, and is as trustworthy as they are,
since only the same user can write it. A damaged, foreign or missing file only makes loading slower.
"""

from __future__ import annotations

import os
import sys
from binascii import crc32
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.metadata import version
from itertools import chain
from json import dumps
from pathlib import Path
from struct import Struct
from time import time_ns
from typing import NamedTuple, Self

import sideband
from attrs import define, field
from pydantic import ConfigDict, TypeAdapter, with_config
from sideband.loading import SkillProblem, SkillSpec
from sideband.state import FileLock, PartialFile, make_home
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from ._config import Config
from ._folder_search import Candidate
from ._skill_files import SkillFiles
from ._stored_skill import decoded, encoded, is_storable, read_files

_FORMAT = 1
# The place and the checksum of the index, at the end of the file.
_END = Struct("!QI")
_MAXIMUM_SIZE = 256 << 20
# Skills in use that fill the file so far are not written again for the sake of others, which would not fit.
_FULL = 0.9
# Several versions and settings can share a home folder.
_MAXIMUM_FILES = 4
# ns; a more recent change may be followed by another one with the same time
_SETTLED = 2_000_000_000


class _Place(NamedTuple):
    """Where a skill is in the file, and its checksum."""

    offset: int
    size: int
    checksum: int


@with_config(ConfigDict(extra="forbid"))
class _Index(TypedDict):
    key: str
    skills: dict[str, _Place]


class _Parsed(NamedTuple):
    """A skill that was parsed."""

    candidate: Candidate
    files: SkillFiles
    spec: SkillSpec
    listed: int
    text: int


_INDEX: TypeAdapter[_Index] = TypeAdapter(_Index)


@define(eq=False)
class SkillCache:
    """The parsed skills of earlier loads. Without a home folder, nothing is stored.

    Args:
        folder: the folder of the file, or ``None``.
        key: what all skills depend on.
    """

    folder: Path | None = None
    key: str = ""
    _began: int = field(default=0, init=False)
    _descriptor: int = field(default=-1, init=False)
    _known: dict[str, _Place] = field(factory=dict, init=False)
    _used: set[str] = field(factory=set, init=False)
    _parsed: dict[str, _Parsed] = field(factory=dict, init=False)

    @classmethod
    @contextmanager
    def in_home(cls, home: Path | None, limits: Config) -> Iterator[Self]:
        """Open the cache of a home folder."""
        cache = cls(home and home / "cache", _key(limits))
        try:
            cache._open()
            yield cache
        finally:
            cache._close()

    @property
    def _file(self) -> Path | None:
        return self.folder and self.folder / f"skills-{self.key[:16]}"

    def find(self, candidate: Candidate, files: SkillFiles, found: list[SkillProblem]) -> tuple[SkillSpec, int] | None:
        """Return a skill and its number of characters, or ``None`` if it has to be parsed.

        Args:
            candidate: the skill's folder and manifest.
            files: its files.
            found: the problems that were found by listing them.
        """
        path = str(candidate.folder)
        place = None if candidate.package else self._known.get(path)
        content = self._read(place) if place else None
        skill = decoded(content, candidate, files, found) if content else None
        if skill is not None:
            self._used.add(path)
        return skill

    def add(self, candidate: Candidate, files: SkillFiles, spec: SkillSpec, *, listed: int, text: int) -> None:
        """Note a parsed skill for ``save``, unless one of its files has just changed and may be changing still."""
        settled = self._began - _SETTLED
        if is_storable(candidate, spec) and all(
            max(one[-2:]) < settled for one in read_files(candidate, files).values()
        ):
            self._parsed[str(candidate.folder)] = _Parsed(candidate, files, spec, listed, text)

    def save(self) -> None:
        """Write the file, if skills were parsed that can be stored. What other hosts have stored is kept."""
        in_use = sum(self._known[path].size for path in self._used)
        if self.folder is None or not self._parsed or in_use > _FULL * _MAXIMUM_SIZE:
            return
        with suppress(OSError):
            make_home(self.folder.parent)
            make_home(self.folder)
            with FileLock(self.folder / "skills.lock") as lock:
                # another host writes the file: what it omits is stored at the next start
                if lock.try_acquire():
                    self._write(self.folder)

    def _open(self) -> None:
        self._began = time_ns()
        if self._file is None:
            return
        with suppress(OSError, ValueError):
            # a pipe, which has no content, is not waited for
            self._descriptor = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            status = os.fstat(self._descriptor)
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return
            self._known = self._read_index(status.st_size)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _read_index(self, size: int) -> dict[str, _Place]:
        end = size - _END.size
        if not 0 <= end <= 2 * _MAXIMUM_SIZE:
            return {}
        offset, checksum = _END.unpack(os.pread(self._descriptor, _END.size, end))
        content = self._read(_Place(offset, end - offset, checksum))
        index = _INDEX.validate_json(content or b"", strict=True)
        return index["skills"] if index["key"] == self.key else {}

    def _read(self, place: _Place) -> bytes | None:
        """Return a part of the file, or ``None`` if it is damaged."""
        if place.offset < 0 or not 0 < place.size <= 2 * _MAXIMUM_SIZE:
            return None
        try:
            content = os.pread(self._descriptor, place.size, place.offset)
        except OSError:
            return None
        return content if crc32(content) == place.checksum else None

    def _write(self, folder: Path) -> None:
        new = folder / "skills.new"
        # of a host that was killed, since this one has the lock
        new.unlink(missing_ok=True)
        partial = PartialFile.create(new)
        try:
            with os.fdopen(partial.descriptor, "wb", closefd=False) as stream:
                places: dict[str, _Place] = {}
                offset = 0
                for path, content in self._contents():
                    places[path] = _Place(offset, len(content), crc32(content))
                    offset += stream.write(content)
                index = dumps({"key": self.key, "skills": places}, ensure_ascii=False).encode()
                stream.write(index + _END.pack(offset, crc32(index)))
            # not synced to disk: the checksums reveal what a power cut damaged
            new.replace(folder / f"skills-{self.key[:16]}")
        finally:
            partial.discard()
        _remove_old(folder)

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield the skills that fit: those in use, those that were parsed now, and the others that still exist."""
        room = _MAXIMUM_SIZE
        others = (path for path in self._known if path not in self._used and path not in self._parsed)
        for path in chain(self._used, self._parsed, others):
            content = self._content(path)
            if content is not None and len(content) <= room:
                room -= len(content)
                yield path, content

    def _content(self, path: str) -> bytes | None:
        if (parsed := self._parsed.get(path)) is not None:
            with suppress(ValueError):
                return encoded(parsed.candidate, parsed.files, parsed.spec, listed=parsed.listed, text=parsed.text)
            return None
        return self._read(self._known[path]) if path in self._used or os.path.lexists(path) else None


def _key(limits: Config) -> str:
    """Return a digest of what the result depends on, apart from the files of a skill."""
    modules = sorted(
        (entry.name, (status := entry.stat()).st_size, status.st_mtime_ns)
        for entry in os.scandir(Path(__file__).parent)
        if entry.name.endswith(".py")
    )
    versions: Mapping[str, str] = {name: version(name) for name in ("packaging", "pydantic", "PyYAML")}
    used = limits.model_dump(exclude={"offline", "wheels"})
    parts = [_FORMAT, sys.version, sideband.__version__, versions, used, modules]
    return sha256(dumps(parts).encode()).hexdigest()


def _remove_old(folder: Path) -> None:
    files = sorted(folder.glob("skills-*"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for file in files[_MAXIMUM_FILES:]:
        file.unlink(missing_ok=True)
