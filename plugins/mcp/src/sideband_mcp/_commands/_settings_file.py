"""Change the servers in the settings file of the user. Comments and formatting are kept."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit
from attrs import define, field
from pydantic import ValidationError
from sideband.errors import ConfigurationError, StateUnwritable
from sideband.state import FileLock, make_home, write_state_file
from sideband.validation import problem_text
from tomlkit.exceptions import TOMLKitError

from .._config import Config

_NAME = "sideband.toml"
_PATH = ("plugins", "mcp", "servers")


@define
class SettingsFile:
    """The settings file of the user, and its content with the changes of a command.

    Attributes:
        path: the file.
        text: the content.
    """

    path: Path
    text: str = field(repr=False)

    @property
    def servers(self) -> Mapping[str, Any]:
        """The tables of the servers, by name."""
        return _split(tomllib.loads(self.text))[1]

    def add(self, name: str, table: Mapping[str, Any]) -> None:
        """Add the table of a server.

        Raises:
            ConfigurationError: if the settings are then invalid.
        """
        # As a block if possible. A table in one line, or with dotted keys, can only have tables like itself in it.
        forms = (_with_table(self.text, name, form, table) for form in (tomlkit.table, tomlkit.inline_table))
        self._change(forms, {**self.servers, name: dict(table)})

    def remove(self, name: str) -> None:
        """Remove the table of a server.

        Raises:
            ConfigurationError: if the settings are then invalid.
        """
        left = {key: table for key, table in self.servers.items() if key != name}
        self._change(iter([_without_table(self.text, name)]), left)

    def _change(self, texts: Iterator[str], servers: Mapping[str, Any]) -> None:
        """Replace the text by the first one that has these servers, and everything else as it was."""
        rest, _ = _split(tomllib.loads(self.text))
        changed = next((text for text in texts if _parsed(text) == (rest, servers)), None)
        if changed is None:
            hint = "change the table of the server by hand"
            problem = "cannot be changed without changing other tables"
            raise ConfigurationError(".".join(_PATH), problem, source=str(self.path), hint=hint)
        try:
            Config.model_validate(tomllib.loads(changed).get("plugins", {}).get("mcp", {}))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, ("plugins", "mcp", *first["loc"])))
            raise ConfigurationError(key, problem_text(first), source=str(self.path)) from None
        self.text = changed


@contextmanager
def changed_settings(home: Path) -> Iterator[SettingsFile]:
    """Write what the block changes, all of it or nothing, while no other command does.

    Raises:
        ConfigurationError: if the file is not TOML.
        StateUnwritable: if it cannot be written.
    """
    make_home(home)
    # The file may be a link into a folder with the settings of other programs.
    path = Path(os.path.realpath(home / _NAME))
    with FileLock(home / "settings.lock") as lock:
        try:
            lock.acquire(math.inf)
        except OSError as error:
            raise StateUnwritable(path, error) from error
        file = SettingsFile(path, before := _read(path))
        yield file
        if file.text != before:
            write_state_file(path, file.text)


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(_NAME, f"invalid TOML: {error}", source=str(path)) from error
    except OSError as error:
        raise ConfigurationError(_NAME, f"cannot be read: {error.strerror}", source=str(path)) from error
    return text


def _with_table(text: str, name: str, form: Callable[[], Any], table: Mapping[str, Any]) -> str:
    document = tomlkit.parse(text)
    inside: Any = document
    try:
        for key in _PATH:
            if key not in inside:
                inside[key] = tomlkit.table(is_super_table=True) if form is tomlkit.table else form()
            inside = inside[key]
        inside[name] = form()
        inside[name].update({key: _toml(value) for key, value in table.items()})
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError):
        return text


def _without_table(text: str, name: str) -> str:
    document = tomlkit.parse(text)
    inside: Any = document
    try:
        for key in _PATH:
            inside = inside[key]
        del inside[name]
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError):
        return text


def _parsed(text: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    try:
        return _split(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return None


def _split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values without the servers, and the servers. Tables that become empty are left out."""
    plugins = _copy(values.get("plugins"))
    mcp = _copy(plugins.pop("mcp", None))
    servers = _copy(mcp.pop("servers", None))
    if mcp:
        plugins["mcp"] = mcp
    rest = {key: value for key, value in values.items() if key != "plugins"}
    return ({**rest, "plugins": plugins} if plugins else rest), servers


def _copy(table: object) -> dict[str, Any]:
    return dict(table) if isinstance(table, Mapping) else {}


def _toml(value: Any) -> Any:
    """Return a value as TOML: inner tables on one line, so that a server is one block."""
    if not isinstance(value, Mapping):
        return value
    table = tomlkit.inline_table()
    table.update(value)
    return table
