"""Read and write ``sideband.toml`` and ``sideband.lock``. What is written is complete, or was not changed."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import tomli_w
from attrs import frozen
from pydantic import ValidationError
from sideband.plugins import LOCK_FILE
from sideband.settings import DistSettings, Settings
from sideband.suggestions import did_you_mean
from sideband.validation import problem_text

from ._errors import DistError, DistInvalid
from ._model import DistLock

MANIFEST_FILE = "sideband.toml"
_HEADER = "# Written by `sideband dist lock` from sideband.toml. Do not edit it: review its changes, and commit it.\n"
_HASHES = ("wheels", "files")
# What the lock contains as a result, or what does not belong to a distribution.
_RESOLVED = ("only", "conflicts", "strict")


@frozen
class DistManifest:
    """A ``sideband.toml`` that describes a distribution.

    Args:
        file: its path.
        digest: the SHA-256 of its content.
        settings: its content.
        raw: its tables.
    """

    file: Path
    digest: str
    settings: Settings
    raw: Mapping[str, Any]

    @property
    def dist(self) -> DistSettings:
        """The table ``[dist]``."""
        return self.settings.dist

    @property
    def folder(self) -> Path:
        """The folder that relative paths start at."""
        return self.file.absolute().parent

    def locked_settings(self) -> dict[str, Any]:
        """Return the tables that the lock contains.

        Raises:
            DistInvalid: if it has settings that cannot be locked.
        """
        policy = dict(self.raw.get("policy", {}))
        if policy.get("files"):
            raise self.invalid("`policy.files` names local files", "make packages of them, and name these in `[dist]`")
        if self.raw.get("skills"):
            raise self.invalid("`skills` names folders", "ship skills as packages, and name these in `[dist.packages]`")
        policy = {key: value for key, value in policy.items() if key not in (*_RESOLVED, "files")}
        tables = {"policy": policy, **{name: self.raw.get(name, {}) for name in ("plugins", "grants", "agent")}}
        return {name: table for name, table in sorted(tables.items()) if table}

    def invalid(self, problem: str, hint: str) -> DistInvalid:
        """Return the error for a problem with this file."""
        return DistInvalid(self.file, problem, hint=hint)


def read_manifest(file: Path) -> DistManifest:
    """Read the file that describes a distribution.

    Raises:
        DistInvalid: if it cannot be read, is invalid, or describes no distribution.
    """
    content = _read(file, hint="write one with `sideband dist init`")
    raw = _parse(file, content)
    try:
        settings = Settings.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        key = ".".join(map(str, problem["loc"]))
        text = problem_text(problem)
        if problem["type"] == "extra_forbidden":
            text = "unknown key" + did_you_mean(str(problem["loc"][-1]), _keys_beside(problem["loc"]))
        raise DistInvalid(file, f"`{key}`: {text}", hint="correct the key") from error
    manifest = DistManifest(file, hashlib.sha256(content).hexdigest(), settings, raw)
    if not settings.dist.packages:
        hint = "name the packages of the distribution, or write the file with `sideband dist init`"
        raise manifest.invalid("`dist.packages` is missing or empty", hint)
    return manifest


def read_dist_lock(file: Path) -> DistLock:
    """Read a lock.

    Raises:
        DistInvalid: if it cannot be read, or is not a lock.
    """
    hint = "write it with `sideband dist lock`"
    raw = _parse(file, _read(file, hint=hint))
    try:
        return DistLock.model_validate(raw)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        key = ".".join(map(str, problem["loc"]))
        raise DistInvalid(file, f"it is not a lock: `{key}`: {problem_text(problem)}", hint=hint) from error


def lock_text(lock: DistLock) -> str:
    """Return the content of the file of a lock: the same for the same lock."""
    data = lock.model_dump(mode="json", exclude_unset=True)
    plugins, packages = data.pop("plugins"), data.pop("packages")
    head = {"version": lock.version, **{name: value for name, value in data.items() if value}}
    # A list without tables has its place before the first table.
    empty: dict[str, Any] = {name: [] for name, tables in (("plugins", plugins), ("packages", packages)) if not tables}
    tables = [*(_table("plugins", one) for one in plugins), *(_table("packages", one) for one in packages)]
    return "\n".join([_HEADER + tomli_w.dumps(empty | head), *tables])


def _table(name: str, table: Mapping[str, Any]) -> str:
    """Return one table of a list of tables."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict) and value}
    plain = {key: value for key, value in table.items() if not isinstance(value, dict) and key not in _HASHES}
    # In quotes that have no escapes, as a lock is read at each start, and this is much faster to read.
    hashes = [_hashes(key, table[key]) for key in _HASHES if key in table]
    tables = [f"\n[{name}.{key}]\n{tomli_w.dumps(value)}" for key, value in inner.items()]
    return "".join([f"[[{name}]]\n", tomli_w.dumps(plain), *hashes, *tables])


def _hashes(key: str, text: str) -> str:
    is_plain = text and "'''" not in text and text.replace("\n", "").isprintable()
    return f"{key} = '''\n{text}'''\n" if is_plain else tomli_w.dumps({key: text})


def write_text(file: Path, text: str) -> None:
    """Write a file completely, or leave it as it was.

    Raises:
        DistError: if it cannot be written.
    """
    partial = file.with_name(f".{file.name}.{token_hex(8)}")
    try:
        with partial.open("x", encoding="utf-8", newline="\n") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(file)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        hint = "check that the folder exists and can be written"
        raise DistError(f"cannot write {file}: {error.strerror or error}", hint=hint) from error


def lock_beside(manifest: Path) -> Path:
    """Return the path of the lock of a ``sideband.toml``."""
    return manifest.with_name(LOCK_FILE)


def _read(file: Path, *, hint: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DistInvalid(file, f"it cannot be read: {error.strerror}", hint=hint) from error


def _parse(file: Path, content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise DistInvalid(file, f"it is not TOML: {error}", hint="correct it") from error


def _keys_beside(location: Sequence[int | str]) -> Iterable[str]:
    """Return the keys of the table that a location is in, if they are known."""
    model: Any = Settings
    for step in location[:-1]:
        field = getattr(model, "model_fields", {}).get(step)
        model = None if field is None else field.annotation
    return getattr(model, "model_fields", {})
