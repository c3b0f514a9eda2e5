"""Load the configuration: defaults < user file < trusted project file < ``SIDEBAND_*`` variables < flags.

The lock of the environment comes last, and what it says can only be restricted.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attrs import Factory, frozen
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import ConfigurationError
from ..plugins._lock import environment_lock
from ..plugins._policy import PluginPolicy
from ..suggestions import did_you_mean
from ..validation import problem_text
from ._agent import AgentSettings
from ._dist import DistSettings
from ._files import PROJECT_FILE, find_project_file, parse_settings, read_settings
from ._plugin_policy import SECTIONS
from ._policy import Policy, resolve_files
from ._skill_folders import SkillFolders, SkillSettings, find_skill_folders, resolve_folders
from ._tools import ToolSettings
from ._trust import trusted_digests, trusted_project

_Path = tuple[str, ...]
_USER = re.compile(r"://[^/\s@]*@")

_TABLE_HINT = 'write a table of TOML, such as { NAME = "value" }'
_COMMANDS = "sideband-cli"  # the distribution of the commands that explain an invalid configuration
COMMAND_LINE = "command line"
"""The source of a value that the command line or the embedding program sets."""


class Settings(BaseModel):
    """The schema of ``sideband.toml``, for users, projects and distributions.

    Attributes:
        policy: the table ``[policy]``.
        agent: the table ``[agent]``.
        skills: the table ``[skills]``.
        tools: the table ``[tools]``.
        dist: the table ``[dist]``.

    Example:
        >>> Settings.model_validate({"policy": {"timeout": 5}}).policy.timeout
        5.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    plugins: dict[str, dict[str, Any]] = Field(default_factory=dict, description="one table for each plugin")
    grants: dict[str, list[str]] = Field(
        default_factory=dict, description='skill, or "plugin:NAME" = capabilities that are granted without asking'
    )
    policy: Policy = Field(default_factory=Policy)
    agent: AgentSettings = Field(default_factory=AgentSettings)
    skills: SkillSettings = Field(default_factory=SkillSettings)
    tools: ToolSettings = Field(default_factory=ToolSettings)
    dist: DistSettings = Field(default_factory=DistSettings)


@frozen
class LoadedSettings:
    """The effective settings.

    Args:
        settings: the values.
        sources: the source of each key that was set, by path: a file, a variable, or ``command line``.
        notices: messages about files and variables that were ignored, with the reason.
        problems: the invalid files, variables and values, which are omitted if ``load_settings`` is tolerant.
        policy_problem: the one of them that leaves it unknown which plugins may load, or ``None``.
        project_file: the trusted project file that was used, or ``None``.
        skill_folders: the folders to search for skills.
    """

    settings: Settings
    sources: Mapping[_Path, str]
    notices: tuple[str, ...] = ()
    problems: tuple[ConfigurationError, ...] = ()
    policy_problem: ConfigurationError | None = None
    project_file: Path | None = None
    skill_folders: SkillFolders = Factory(SkillFolders)

    def plugin_policy(self) -> PluginPolicy:
        """Return the settings for the plugin host."""
        if self.policy_problem is not None:
            reason = "the configuration is invalid, so it is unknown which plugins may load"
            return PluginPolicy(only=frozenset({_COMMANDS}), only_reason=reason)
        policy = self.settings.policy
        lock = environment_lock()
        required = lock.settings.get("policy", {}).get("guards", ()) if lock is not None else ()
        return PluginPolicy(
            deny=policy.deny,
            only=None if policy.only is None else frozenset(policy.only),
            conflicts=policy.conflicts,
            files=policy.files,
            order={hook: tuple(names) for hook, names in policy.order.items()},
            strict=policy.strict or lock is not None,
            guards=frozenset({*policy.guards, *required}),
            config=self.settings.plugins,
            rights={name: tuple(given) for name, given in self.settings.grants.items() if name.startswith("plugin:")},
            config_source={
                ".".join(path[1:depth]): source
                for path, source in self.sources.items()
                for depth in (2, 3)
                if path[0] == "plugins"
            },
        )

    def effective(self) -> Iterator[tuple[str, Any, str]]:
        """Yield each key that a host uses with its value and source, sorted by key."""
        for section, table in self.settings.model_dump(exclude={"dist"}).items():
            for name, value in sorted(table.items()):
                if isinstance(value, dict) and value:
                    for key, item in sorted(value.items()):
                        yield f"{section}.{name}.{key}", item, self.sources.get((section, name, key), "default")
                else:
                    yield f"{section}.{name}", value, self.sources.get((section, name), "default")


def load_settings(
    home: Path,
    *,
    user: Path | None = None,
    project: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    tolerant: bool = False,
) -> LoadedSettings:
    """Read and merge all layers of the configuration.

    Args:
        home: the host's state folder; its ``sideband.toml`` is the user file.
        user: the user's home directory, whose default folders of skills are used; ``None`` to use none.
        project: a folder; the ``sideband.toml`` in it or in its nearest parent is used if it is trusted, and then also
            the default folders of skills beside it.
        environment: environment variables such as ``SIDEBAND_POLICY__TIMEOUT=5``.
        flags: nested tables, with the structure of the file.
        tolerant: whether to omit and list invalid files, variables and values, for commands that explain them. If it
            is unknown which plugins may load, only those of the standard commands may.

    Raises:
        ConfigurationError: if a key or value is invalid; the message names the key, the value and the source.
        LockInvalid: if the environment has a lock that cannot be used.
    """
    merged: dict[str, Any] = {}
    sources: dict[_Path, str] = {}
    notices: list[str] = []
    problems: list[ConfigurationError] = []
    affecting: list[ConfigurationError] = []

    def report(problem: ConfigurationError, omitted: str) -> None:
        if not tolerant:
            raise problem from None
        problems.append(problem)
        if _affects_plugins(problem.key) or _affects_plugins(omitted):
            affecting.append(problem)

    layers: list[Callable[[], tuple[dict[str, Any], str]]] = [
        lambda: _user_layer(home),
        lambda: _project_layer(home, project, notices),
        *(partial(_variable_layer, name, text, notices) for name, text in sorted((environment or {}).items())),
        lambda: (dict(flags or {}), COMMAND_LINE),
    ]
    for read in layers:
        try:
            values, source = read()
            notices += _replaced_files(merged, values, source, sources)
            merge(merged, values, source, sources)
        except ConfigurationError as error:
            report(error, error.key)
    if (lock := environment_lock()) is not None:
        from ._locked_settings import under_lock

        merged, sources, notice = under_lock(merged, sources, lock)
        notices += filter(None, [notice])
    while True:
        try:
            settings = Settings.model_validate(merged)
        except ValidationError as error:
            problem = _configuration_error(error, sources)
            report(problem, _omit(merged, error.errors()[0]["loc"]))
            continue
        break
    trusted = None
    with suppress(ConfigurationError):  # reported with the layer
        trusted = trusted_project(home, project) if project else None
    return LoadedSettings(
        settings,
        sources,
        tuple(notices),
        tuple(problems),
        next(iter(affecting), None),
        trusted and trusted / PROJECT_FILE,
        find_skill_folders(settings.skills, user, trusted, project and _project_folder(project)),
    )


def _replaced_files(
    merged: Mapping[str, Any], values: Mapping[str, Any], source: str, sources: Mapping[_Path, str]
) -> Iterator[str]:
    """Yield a message for each plugin whose file is replaced: that of the user may be a guard."""
    before, after = (_files_of(one) for one in (merged, values))
    for label in before.keys() & after.keys():
        if before[label] != after[label]:
            path = ("policy", "files", label)
            yield f"{source} replaces the file of `{label}`, which {sources.get(path, 'another source')} sets"


def _files_of(values: Mapping[str, Any]) -> Mapping[str, Any]:
    policy = values.get("policy")
    files = policy.get("files") if isinstance(policy, Mapping) else None
    return files if isinstance(files, Mapping) else {}


def _project_folder(project: Path) -> Path:
    file = find_project_file(project)
    return file.parent if file else project.absolute()


def _omit(table: dict[str, Any], path: Sequence[int | str]) -> str:
    """Remove the innermost key of ``path`` that exists, or else everything, and return the removed key."""
    here: list[str] = []
    parent = table
    for part in map(str, path):
        if not isinstance(table, dict) or part not in table:
            break
        parent, table = table, table[part]
        here.append(part)
    if here:
        del parent[here[-1]]
    else:
        parent.clear()
    return ".".join(here)


def _affects_plugins(key: str) -> bool:
    """Return whether it is unknown which plugins may load if this key is invalid.

    So it is if the key is unknown, since it may be a misspelled one, such as ``polcy.deny``.
    """
    section, _, rest = key.partition(".")
    if section == "policy":
        return rest.partition(".")[0] not in Policy.model_fields.keys() - {"deny", "only", "conflicts", "files"}
    return section not in SECTIONS


def _user_layer(home: Path) -> tuple[dict[str, Any], str]:
    file = home / PROJECT_FILE
    return (_resolved(read_settings(file), home), str(file)) if file.is_file() else ({}, "")


def _project_layer(home: Path, project: Path | None, notices: list[str]) -> tuple[dict[str, Any], str]:
    file = find_project_file(project) if project else None
    if file is None or file == home / PROJECT_FILE:
        return {}, ""
    try:
        content = file.read_bytes()
    except OSError as error:
        notices.append(f"ignored {file}: {error.strerror}")
        return {}, ""
    if trusted_digests(home, "projects").get(str(file)) != hashlib.sha256(content).hexdigest():
        notices.append(f"ignored {file}: its current content is not trusted; add --trust to use it")
        return {}, ""
    # Parse the bytes whose digest was checked; the file may have changed since.
    return _resolved(parse_settings(file, content), file.parent, of_project=True), str(file)


def _resolved(values: dict[str, Any], base: Path, *, of_project: bool = False) -> dict[str, Any]:
    """Return the settings of a file in the folder ``base`` with absolute paths."""
    return resolve_files(resolve_folders(values, base, of_project=of_project), base)


def _variable_layer(name: str, text: str, notices: list[str]) -> tuple[dict[str, Any], str]:
    if not name.startswith("SIDEBAND_"):
        return {}, ""
    section, *path = name.removeprefix("SIDEBAND_").lower().split("__")
    if section in SECTIONS:
        if not path or not all(path):
            hint = f"write SIDEBAND_{section.upper()}__KEY"
            raise ConfigurationError(section, f"`{name}` does not name a key", source=name, hint=hint)
        return setting([section, *path], text), name
    if path:
        plugin = f" (did you mean `{name.replace('SIDEBAND_', 'SIDEBAND_PLUGINS__', 1)}`?)"
        suggestion = did_you_mean(section, SECTIONS) or plugin
        notices.append(f"ignored the variable {name}: unknown section `{section}`{suggestion}")
    elif name.startswith(tuple(f"SIDEBAND_{one.upper()}_" for one in SECTIONS)):
        notices.append(f"ignored the variable {name}: separate section and key by two underscores")
    return {}, ""


def check_settings(values: Mapping[str, Any], source: str) -> Settings:
    """Validate the content of a file. The tables of plugins are validated with their plugins only.

    Args:
        values: the content.
        source: the file, for the message.

    Raises:
        ConfigurationError: if a key or value is invalid.

    Example:
        >>> check_settings({"policy": {"timeout": 5}}, "sideband.toml").policy.timeout
        5.0
    """
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        sources: dict[_Path, str] = {}
        merge({}, values, source, sources)
        raise _configuration_error(error, sources) from None


def setting(path: Sequence[str], text: str) -> dict[str, Any]:
    """Return one setting as a nested table. ``text`` is parsed as a TOML value, or else used as a string.

    Example:
        >>> setting(["policy", "timeout"], "5")
        {'policy': {'timeout': 5}}
    """
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        value = text
    for key in reversed(path):
        value = {key: value}
    return dict(value)


def merge(
    into: dict[str, Any],
    values: Mapping[str, Any],
    source: str = "",
    sources: dict[_Path, str] | None = None,
    path: _Path = (),
) -> None:
    """Merge ``values`` into ``into``, where ``values`` take precedence, and record their source in ``sources``."""
    for name, value in values.items():
        here = (*path, name)
        # Merge sections, tables and keys, but not the values of keys: their structure is up to the plugin.
        if isinstance(value, Mapping) and len(here) < 3 and isinstance(into.setdefault(name, {}), dict):
            merge(into[name], value, source, sources, here)
        else:
            into[name] = value
            if sources is not None:
                sources[here] = source


def _configuration_error(error: ValidationError, sources: Mapping[_Path, str]) -> ConfigurationError:
    problem = error.errors(include_url=False, include_context=False)[0]
    path = tuple(map(str, problem["loc"]))
    source = next((where for known, where in sources.items() if known[: len(path)] == path[: len(known)]), "")
    key = ".".join(path)
    if problem["type"] == "extra_forbidden":
        tables: dict[str, type[BaseModel]] = {
            "agent": AgentSettings,
            "skills": SkillSettings,
            "tools": ToolSettings,
            "dist": DistSettings,
        }
        fields = tables.get(path[0], Policy).model_fields
        known_keys = SECTIONS if len(path) == 1 else [f"{path[0]}.{name}" for name in fields]
        is_table = len(path) == 1 and isinstance(problem["input"], dict)
        # The name of a plugin is the likely reason for a table that resembles no section.
        suggestion = did_you_mean(key, known_keys) or (f" (did you mean `[plugins.{key}]`?)" if is_table else "")
        return ConfigurationError(key, f"unknown key{suggestion}", source=source)
    # A value of a plugin may be a secret, and so may a part of a URL.
    got = "" if path[0] == "plugins" else f" (got {_USER.sub('://', repr(problem['input']))})"
    if problem["type"] == "dict_type":
        return ConfigurationError(key, f"expected a table{got}", source=source, hint=_TABLE_HINT)
    return ConfigurationError(key, problem_text(problem) + got, source=source)
