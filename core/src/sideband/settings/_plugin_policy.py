"""The policy about plugins, known without reading the configuration if that has not changed.

Reading the configuration takes longer than all the rest of ``sideband plugins list``. This module imports only light
parts of the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..plugins._cache import cache_file, read_cache, write_cache
from ..plugins._lock import LOCK_FILE
from ..plugins._policy import PluginPolicy

_NAME = "plugin-policy"
_FILES = ("sideband.toml", "trust.toml")
SECTIONS = ("plugins", "grants", "policy", "agent", "skills", "tools", "dist")


def known_plugin_policy(home: Path, project: Path, environment: Mapping[str, str]) -> PluginPolicy | None:
    """Return the policy to list plugins with, or ``None`` if the configuration must be read, as by ``load_settings``.

    The policy has the names of configured plugins, but not their configuration, since that may contain secrets.

    Args:
        home: the host's state folder.
        project: the folder whose project file would be used.
        environment: environment variables.
    """
    files = _files(home, project, environment)
    if files is None:
        return None
    if not any(str(path).endswith((_FILES[0], LOCK_FILE)) for path, *_ in files):
        return PluginPolicy()
    return _policy(read_cache(cache_file(home, _NAME), files))


def remember_plugin_policy(home: Path, project: Path, environment: Mapping[str, str], policy: PluginPolicy) -> None:
    """Store the policy of the configuration that was read."""
    files = _files(home, project, environment)
    if files is None:
        return
    content = {
        "deny": dict(policy.deny),
        "only": None if policy.only is None else sorted(policy.only),
        "conflicts": dict(policy.conflicts),
        "rights": {name: list(given) for name, given in policy.rights.items()},
        "plugins": {name: policy.config_source.get(name, "") for name in policy.config},
        "files": dict(policy.files),
    }
    write_cache(cache_file(home, _NAME), files, content, changed=(time for _, *times, _, _ in files for time in times))


def _files(home: Path, project: Path, environment: Mapping[str, str]) -> list[list[Any]] | None:
    """Return what changes with each file of the configuration, or ``None`` if variables have settings too."""
    if any(name.startswith("SIDEBAND_") and _may_be_setting(name.lower()) for name in environment):
        return None
    folder = project.absolute()
    lock = Path(sys.prefix, LOCK_FILE)
    paths = (lock, *(home / name for name in _FILES), *(parent / _FILES[0] for parent in (folder, *folder.parents)))
    found = []
    for path in paths:
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
        found.append([str(path), status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino])
    return found


def _may_be_setting(name: str) -> bool:
    return "__" in name or name.split("_")[1] in SECTIONS


def _policy(content: Any) -> PluginPolicy | None:
    """Return the policy, or ``None`` if the content is not as expected."""
    try:
        deny, conflicts, sources, files = (_texts(content[name]) for name in ("deny", "conflicts", "plugins", "files"))
        only = None if content["only"] is None else frozenset(map(str, content["only"]))
        rights = {name: tuple(map(str, given)) for name, given in content["rights"].items()}
    except (AttributeError, KeyError, TypeError):
        return None
    config: dict[str, dict[str, Any]] = {name: {} for name in sources}
    return PluginPolicy(deny, only, conflicts, config=config, config_source=sources, rights=rights, files=files)


def _texts(table: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in table.items()}
