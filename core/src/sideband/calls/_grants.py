"""Grants that the user gave to a skill, stored by the digest of the skill, or to a plugin, stored by its holder."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError, StateUnwritable
from ..ops import Grant
from ..settings._files import toml_string
from ..state import FileLock, make_home, write_state_file

_PLUGIN = "plugin:"


class RememberedGrants:
    """The file ``grants.toml``. A modified skill has another digest and must be granted again.

    A plugin (``plugin:NAME:DISTRIBUTION``) keeps its grant, but gets no more of it than its family declares.
    """

    def __init__(self, home: Path) -> None:
        self._file = home / "grants.toml"
        self._path = str(self._file)
        self._seen: object = None  # the file's status when it was last read
        self._known: dict[str, Grant] = {}

    def get(self, digest: str) -> Grant:
        """Return the grant of the skill with this digest or of a plugin, which may be empty."""
        seen = self._status()
        if seen != self._seen:
            self._known = {}
            self._seen = seen
        if digest not in self._known:
            entry = self._read().get(digest, {})
            self._known[digest] = Grant.parse(entry.get("capabilities", ()))
        return self._known[digest]

    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """Return all entries: ``capabilities``, when they were ``granted``, and the name of the skill or plugin."""
        return self._read()

    def remember(self, digest: str, skill: str, grant: Grant) -> None:
        """Add ``grant`` to the grant of the skill with this digest or of a plugin."""
        with self._changing() as entries:
            held = Grant.parse(entries.get(digest, {}).get("capabilities", ()))
            both = Grant.of([*held.capabilities, *grant.capabilities])
            entries[digest] = {
                "plugin" if digest.startswith(_PLUGIN) else "skill": skill,
                "capabilities": list(both.texts()),
                "granted": datetime.now(UTC).isoformat(timespec="seconds"),
            }

    def forget(self, digest: str, grant: Grant) -> None:
        """Remove the capabilities that ``grant`` covers from the grant of the skill with this digest."""
        with self._changing() as entries:
            if digest in entries:
                held = Grant.parse(entries[digest]["capabilities"])
                entries[digest]["capabilities"] = list(grant.missing(held).texts())
                if not entries[digest]["capabilities"]:
                    del entries[digest]

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[str, Any]]]:
        """Write what the block changes, while no other host does: a revoked grant must not come back."""
        make_home(self._file.parent)
        with FileLock(self._file.with_suffix(".lock")) as lock:
            try:
                lock.acquire(math.inf)
            except OSError as error:
                raise StateUnwritable(self._file, error) from error
            entries = self._read()
            yield entries
            write_state_file(self._file, "".join(_table(name, entry) for name, entry in sorted(entries.items())))

    def _status(self) -> object:
        """Return a value that changes if the file is replaced or written to."""
        try:
            status = os.stat(self._path)  # noqa: PTH116  runs in every call, and is twice as fast as pathlib
        except OSError as error:
            return error.errno
        return status.st_ino, status.st_mtime_ns, status.st_size, status.st_ctime_ns

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            tables = tomllib.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._invalid("skills", f"invalid TOML: {error}") from error
        except OSError as error:
            raise self._invalid("skills", f"cannot be read: {error.strerror}") from error
        found = {}
        for table, prefix in (("skills", ""), ("plugins", _PLUGIN)):
            entries = tables.get(table, {})
            for name, entry in entries.items() if isinstance(entries, dict) else [("", entries)]:
                capabilities = entry.get("capabilities") if isinstance(entry, dict) else None
                if not isinstance(capabilities, list) or not all(isinstance(one, str) for one in capabilities):
                    raise self._invalid(f"{table}.{name}", "expected a table with a list `capabilities`")
                if not name.startswith(_PLUGIN):
                    found[prefix + name] = entry
        return found

    def _invalid(self, key: str, problem: str) -> ConfigurationError:
        hint = "correct the file, or delete it and grant the capabilities again"
        return ConfigurationError(key, problem, source=str(self._file), hint=hint)


def _table(digest: str, entry: Mapping[str, Any]) -> str:
    lines = [f"{name} = {_value(value)}" for name, value in entry.items()]
    of_plugin = digest.startswith(_PLUGIN)
    name = toml_string(digest.removeprefix(_PLUGIN))
    return "\n".join([f"[{'plugins' if of_plugin else 'skills'}.{name}]", *lines, "", ""])


def _value(value: str | Sequence[str]) -> str:
    return toml_string(value) if isinstance(value, str) else f"[{', '.join(map(toml_string, value))}]"
