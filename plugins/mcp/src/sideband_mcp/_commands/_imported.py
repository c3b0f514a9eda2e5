"""The servers in the file of another client: `.mcp.json`, or `claude_desktop_config.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from attrs import define, field, frozen
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sideband.errors import ConfigurationError, UsageError
from sideband.suggestions import did_you_mean
from sideband.validation import problem_text

from .._catalog import word_of

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_BEARER = re.compile(r"Bearer \$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MAX_BYTES = 1 << 20


class _ForeignServer(BaseModel):
    """One server, as other clients write it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "sse"] | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False


class _ForeignFile(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    servers: Annotated[dict[str, _ForeignServer], Field(alias="mcpServers")]


@frozen
class ImportedServer:
    """A server of a file, as a table of the settings.

    Attributes:
        of_file: its name in the file.
        name: its name in the settings.
        table: the table.
        unknown: the keys that have no meaning here.
    """

    of_file: str
    name: str
    table: Mapping[str, Any]
    unknown: tuple[str, ...] = ()


@define
class _Values:
    """What the user allows variables in a file to be. The environment of this process is not among it."""

    values: Mapping[str, str]
    secrets: Mapping[str, str]
    missing: dict[str, str] = field(init=False, factory=dict)

    def text(self, text: str, where: str) -> str:
        """Return a text with the values of its variables."""

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            if name in self.values:
                return self.values[name]
            if default is None or name in self.secrets:
                self.missing.setdefault(name, where)
            return default or ""

        return _VARIABLE.sub(value, text)

    def secret(self, text: str, form: re.Pattern[str] = _VARIABLE) -> str | None:
        """Return the secret that a text consists of, if the user named one for its variable."""
        found = form.fullmatch(text)
        return self.secrets.get(found[1]) if found else None


def imported_servers(
    path: Path, names: Collection[str], values: Mapping[str, str], secrets: Mapping[str, str]
) -> list[ImportedServer]:
    """Return servers of a file. Nothing but the file is read.

    Args:
        path: the file.
        names: the names of the servers, as the file or the settings write them; empty for all.
        values: the values of variables that the file uses.
        secrets: the secrets that are the values of variables that the file uses.

    Raises:
        ConfigurationError: if it is not such a file, or two of its servers have the same name here.
        UsageError: if it has no such server, or uses a variable without a value.
    """
    found = _read(path)
    servers = {one: word_of(one) for one in found}
    for name in names:
        if name not in servers and name not in servers.values():
            problem = f"{path} has no server `{name}`{did_you_mean(name, servers)}"
            raise UsageError(problem, hint=f"it has {', '.join(f'`{one}`' for one in servers) or 'no servers'}")
    wanted = {one: name for one, name in servers.items() if not names or one in names or name in names}
    for one, name in wanted.items():
        if twice := [other for other in wanted if other != one and wanted[other] == name]:
            problem = f"`{one}` and `{twice[0]}` have the same name `{name}` here"
            raise ConfigurationError("mcpServers", problem, source=str(path), hint="import one of them by its name")
    known = _Values(values, secrets)
    tables = [
        ImportedServer(one, name, dict(_table(found[one], known, path)), _unknown(found[one]))
        for one, name in wanted.items()
    ]
    if known.missing:
        name, where = next(iter(known.missing.items()))
        raise UsageError(
            f"{path} uses the variable `{name}` in {where}, and variables of this process are not read",
            hint=f"add --environment {name}=VALUE, or --secret {name}=HANDLE if it is all of an `env` value",
        )
    return tables


def server_names(path: Path) -> list[str]:
    """Return the names that the servers of a file would have here.

    Raises:
        ConfigurationError: if it is not such a file.
    """
    return [word_of(one) for one in _read(path)]


def _read(path: Path) -> Mapping[str, _ForeignServer]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ConfigurationError(path.name, "has more than 1 MiB", source=str(path))
        return _ForeignFile.model_validate(json.loads(content)).servers
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            hint="name a `.mcp.json`, or the `claude_desktop_config.json` of another client",
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ConfigurationError(key, problem_text(first), source=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(path.name, f"invalid JSON: {error}", source=str(path)) from None


def _table(one: _ForeignServer, known: _Values, path: Path) -> Iterator[tuple[str, Any]]:
    if one.command is not None:
        yield "command", [known.text(word, "`command` or `args`") for word in (one.command, *one.args)]
        yield from _variables(one, known)
    if one.cwd is not None:
        # Not where sideband is started later: the program may read this folder.
        folder = str((path.parent / Path(known.text(one.cwd, "`cwd`")).expanduser()).resolve())
        yield "folder", folder
        yield "read", [folder]
    if one.url is not None:
        yield "url", known.text(one.url, "`url`")
        yield from _headers(one, known)
    if one.type == "sse":
        yield "sse", True
    if one.disabled:
        yield "disabled", True


def _variables(one: _ForeignServer, known: _Values) -> Iterator[tuple[str, Any]]:
    secrets = {name: handle for name, text in one.env.items() if (handle := known.secret(text)) is not None}
    rest = {name: known.text(text, f"`env.{name}`") for name, text in one.env.items() if name not in secrets}
    if rest:
        yield "environment", rest
    if secrets:
        yield "secrets", secrets


def _headers(one: _ForeignServer, known: _Values) -> Iterator[tuple[str, Any]]:
    """Yield the headers, and the secret if it is sent as a bearer token, which the host then binds to the origin."""
    secrets = {
        name: handle
        for name, text in one.headers.items()
        if name.lower() == "authorization" and (handle := known.secret(text, _BEARER)) is not None
    }
    if secrets:
        yield "auth", next(iter(secrets.values()))
    rest = {name: known.text(text, f"`headers.{name}`") for name, text in one.headers.items() if name not in secrets}
    if rest:
        yield "headers", rest


def _unknown(one: _ForeignServer) -> tuple[str, ...]:
    return tuple(sorted(one.model_extra or ()))
