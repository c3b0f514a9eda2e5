"""The words that complete an argument, by what the help calls it. Each is cheap to find: no network, no imports."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sideband.settings import LoadedSettings

_MODES = ("manual", "assist", "semi", "full", "plan")


def completers() -> Mapping[str, Callable[..., Any]]:
    """Return the completer of each kind of argument."""
    from argcomplete.completers import ChoicesCompleter, DirectoriesCompleter, FilesCompleter

    files, folders = FilesCompleter(), DirectoriesCompleter()
    return {
        **dict.fromkeys(("FILE", "PATH"), files),
        **dict.fromkeys(("DIR", "FOLDER"), folders),
        "SESSION": _sessions,
        "SKILL": _skills,
        "SKILL.TOOL": _skills_of_tools,
        "SKILL=CAPABILITY": _granted_skills,
        "PROVIDER:MODEL": _models,
        "PROVIDER": _providers,
        "PLUGIN": _plugins,
        "MODE": ChoicesCompleter(dict.fromkeys(_MODES, "")),
    }


def _sessions(**_: Any) -> Mapping[str, str]:
    """Return the names and ids of sessions, with their first messages."""
    from ._session_words import session_words

    return session_words(_settings())


def _skills(**_: Any) -> Iterator[str]:
    """Yield the names of the skills in folders. Those of packages are not looked for."""
    folders = _settings().skill_folders
    for source in (*folders.configured, *folders.personal, *folders.project):
        candidates = [source, *(source.iterdir() if source.is_dir() else ())]
        yield from (one.name for one in candidates if (one / "SKILL.md").is_file())


def _skills_of_tools(**_: Any) -> Iterator[str]:
    return (f"{name}." for name in _skills())


def _granted_skills(**_: Any) -> Iterator[str]:
    return (f"{name}=" for name in _skills())


def _models(**_: Any) -> Iterator[str]:
    """Yield the models that the settings name, and the providers. Listing the models of all would need the network."""
    settings = _settings().settings
    if settings.agent.model is not None:
        yield settings.agent.model
    yield from settings.agent.fallbacks
    table = settings.plugins.get("llm", {})
    for key in ("aliases", "prices"):
        yield from table.get(key, ())
    yield from (f"{one}:" for one in _providers())


def _providers(**_: Any) -> list[str]:
    from .._setup._services import services_of

    return [one.provider for one in services_of(_settings().settings.plugins)]


def _plugins(**_: Any) -> list[str]:
    from sideband.plugins import discover
    from sideband.state import default_home

    found = discover(default_home(), _settings().plugin_policy())
    return sorted({one.name for one in found if one.kind not in ("command", "skill")})


def _settings() -> LoadedSettings:
    from sideband.command_line import load_options

    options = Namespace(trust=False, set=[], isolation=None, strict=False)
    return load_options(options, tolerant=True)
