"""The settings file of the user: read it, change it, and write all of it or nothing."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field
from sideband.errors import ConfigurationError, StateUnwritable
from sideband.state import FileLock, make_home, write_state_file

from ._tables import same_settings, with_value, without_value

SETTINGS_FILE = "sideband.toml"
"""The name of the file, in the home folder of sideband."""


@define
class SettingsFile:
    """The settings file of the user, and its content with the changes of a command.

    Attributes:
        path: the file.
        text: the content.

    Example:
        >>> file = SettingsFile(Path("sideband.toml"), "[agent]  # mine")
        >>> file.set(("agent", "model"), "openai-ollama:qwen3")
        >>> print(file.text.rstrip())
        [agent]  # mine
        model = "openai-ollama:qwen3"
    """

    path: Path
    text: str = field(repr=False)

    @property
    def values(self) -> dict[str, Any]:
        """The tables of the file."""
        return tomllib.loads(self.text)

    def get(self, path: Sequence[str]) -> Any:
        """Return the value at a path of keys, or ``None`` if the file does not have it."""
        value: Any = self.values
        for key in path:
            if not isinstance(value, Mapping) or key not in value:
                return None
            value = value[key]
        return value

    def set(self, path: Sequence[str], value: Any) -> None:
        """Set the value at a path of keys. A table that the file does not have is written as a block if possible.

        Raises:
            ConfigurationError: if that is impossible without changing anything else.
        """
        wanted = _changed(self.values, path, value, source=self.path)
        self._replace(path, with_value(self.text, path, value), wanted)

    def replace(self, text: str) -> None:
        """Replace the whole content.

        Raises:
            ConfigurationError: if it is not TOML.
        """
        self.text = _checked(text, self.path)

    def remove(self, path: Sequence[str]) -> None:
        """Remove the value at a path of keys, if the file has it.

        Raises:
            ConfigurationError: if that is impossible without changing anything else.
        """
        if self.get(path) is not None:
            *tables, key = path
            wanted = self.values
            inside = wanted
            for table in tables:
                inside = inside[table]
            del inside[key]
            self._replace(path, without_value(self.text, path), wanted)

    def _replace(self, path: Sequence[str], texts: Iterator[str], wanted: Mapping[str, Any]) -> None:
        """Replace the text by the first one that has these values."""
        changed = next((text for text in texts if same_settings(text, wanted)), None)
        if changed is None:
            problem = "cannot be changed without changing other tables"
            raise ConfigurationError(".".join(path), problem, source=str(self.path), hint="change it by hand")
        self.text = changed


def settings_path(home: Path) -> Path:
    """Return the settings file. It may be a link into a folder with the settings of other programs.

    Args:
        home: the home folder of sideband.
    """
    return Path(os.path.realpath(home / SETTINGS_FILE))


@contextmanager
def changed_settings(home: Path, *, repairs: bool = False) -> Iterator[SettingsFile]:
    """Write what the block changes, all of it or nothing, while no other command does.

    An exception of the block leaves the file as it was.

    Args:
        home: the home folder of sideband.
        repairs: whether the file may be invalid TOML, because the block replaces its content.

    Raises:
        ConfigurationError: if the file is not TOML, or not UTF-8.
        StateUnwritable: if it cannot be written.

    Example:
        >>> from tempfile import mkdtemp
        >>> home = Path(mkdtemp())
        >>> with changed_settings(home) as file:
        ...     file.set(("policy", "timeout"), 5)
        >>> print((home / "sideband.toml").read_text().rstrip())
        [policy]
        timeout = 5
    """
    make_home(home)
    path = settings_path(home)
    with FileLock(home / "settings.lock") as lock:
        try:
            lock.acquire(math.inf)
        except OSError as error:
            raise StateUnwritable(path, error) from None
        written = _read(path)
        file = SettingsFile(path, before := written.replace("\r\n", "\n"))
        if not repairs:
            file.replace(before)
        yield file
        if file.text != before:
            is_dos = before != written and written.count("\n") == written.count("\r\n")
            write_state_file(path, file.text.replace("\n", "\r\n") if is_dos else file.text)


def read_text(path: Path) -> str:
    """Return the content of a settings file, which may be invalid; an empty text if the file is missing.

    Raises:
        ConfigurationError: if it cannot be read, is not a regular file, or is not UTF-8.
    """
    return _read(path).replace("\r\n", "\n")


def _read(path: Path) -> str:
    """Return the content with its line ends."""
    try:
        if path.is_file():
            return path.read_bytes().decode()
        if not os.path.lexists(path):
            return ""
        problem = "not a regular file"  # writing would replace a device or a pipe
    except UnicodeDecodeError as error:
        problem = f"invalid TOML: {error}"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    raise ConfigurationError(SETTINGS_FILE, problem, source=str(path))


def _checked(text: str, path: Path) -> str:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # Not the cause: it would be reported as the place of a mistake in a plugin.
        raise ConfigurationError(SETTINGS_FILE, f"invalid TOML: {error}", source=str(path)) from None
    return text


def _changed(values: dict[str, Any], path: Sequence[str], value: Any, *, source: Path) -> dict[str, Any]:
    *tables, key = path
    inside = values
    for depth, table in enumerate(tables, 1):
        inside = inside.setdefault(table, {})
        if not isinstance(inside, dict):
            problem = f"cannot be set, because `{'.'.join(path[:depth])}` is not a table"
            raise ConfigurationError(".".join(path), problem, source=str(source), hint="change it by hand")
    inside[key] = value
    return values
