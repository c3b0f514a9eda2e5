"""Read the metadata of installed distributions, without importing their code."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import importlib_metadata
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from .._version import __version__
from ._entry_point import EntryPoint, Installed

_PREFIX = "sideband."
_CORE = "sideband-core"


def scan(path: list[str]) -> Installed:
    """Return the entry points of all distributions in these folders, and a problem for each unreadable one."""
    importlib.invalidate_caches()  # to find packages that were installed a moment ago
    found: list[EntryPoint] = []
    problems: list[str] = []
    for name, distribution in _candidates(path, problems):
        try:
            found.extend(_read(name, distribution, path))
        except (ValueError, TypeError, OSError, importlib_metadata.MetadataNotFound) as error:
            problems.append(f"the metadata of `{name}` cannot be read: {error}")
    return Installed(tuple(sorted(set(found))), tuple(problems))


def _candidates(path: list[str], problems: list[str]) -> Iterator[tuple[str, importlib_metadata.Distribution]]:
    """Yield the distributions with plugins. If several have the same name, yield the one that Python would import."""
    seen = set()
    for distribution in importlib_metadata.Distribution.discover(path=path):
        if f"[{_PREFIX}" not in _text(distribution, "entry_points.txt"):
            continue
        name = _name(distribution)
        if not name:
            folder = distribution.locate_file("")
            problems.append(f"a distribution in {folder} has plugins, but no name in its metadata")
        elif canonicalize_name(name) not in seen:
            seen.add(canonicalize_name(name))
            yield name, next(iter(importlib_metadata.Distribution.discover(name=name, path=path)), distribution)


def _name(distribution: importlib_metadata.Distribution) -> str:
    try:
        return distribution.metadata["Name"] or ""
    except (KeyError, ValueError, OSError, importlib_metadata.MetadataNotFound):
        return ""


def _read(name: str, distribution: importlib_metadata.Distribution, path: list[str]) -> Iterator[EntryPoint]:
    metadata = distribution.metadata  # each property of the distribution would parse it again
    required = metadata.get_all("Requires-Dist") or distribution.requires or ()
    requires = tuple(line for line in required if _project(line) == _CORE)
    version = metadata.get("Version") or "0"
    unmet = _unmet(requires)
    source = _source(distribution)
    editable = _is_editable(source)
    hashed = not editable and _has_hashes(distribution)
    digest = sha256(_text(distribution, "RECORD").encode()).hexdigest() if hashed else ""
    for entry_point in distribution.entry_points:
        if not entry_point.group.startswith(_PREFIX):
            continue
        api, kind = _split_group(entry_point.group)
        yield EntryPoint(
            api=api,
            kind=kind,
            name=entry_point.name,
            value=entry_point.value,
            distribution=name,
            version=version,
            requires=requires,
            unmet=unmet or (_missing(distribution, entry_point.extras, path) if entry_point.extras else ""),
            editable=editable,
            installer=_text(distribution, "INSTALLER").strip(),
            location=str(distribution.locate_file("")),
            hashed=hashed,
            digest=digest,
            url=_address(source),
        )


def _split_group(group: str) -> tuple[int, str]:
    """Split a group such as ``sideband.v1.op`` into version and kind, (1, ``op``); a missing version is 0."""
    version, _, kind = group.removeprefix(_PREFIX).partition(".")
    if version.startswith("v") and version[1:].isdecimal() and kind:
        return int(version[1:]), kind
    return 0, group.removeprefix(_PREFIX)


def _source(distribution: importlib_metadata.Distribution) -> Mapping[str, Any]:
    """Return what ``direct_url.json`` says about the source of a distribution; nothing without a valid one."""
    try:
        found = json.loads(_text(distribution, "direct_url.json"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_editable(source: Mapping[str, Any]) -> bool:
    folder = source.get("dir_info")
    return isinstance(folder, dict) and folder.get("editable") is True


def _address(source: Mapping[str, Any]) -> str:
    """Return the address without what may be a credential: user, password, query and fragment."""
    address = source.get("url")
    if not isinstance(address, str) or "://" not in address:
        return ""
    scheme, colon, rest = re.split(r"[?#]", address, maxsplit=1)[0].partition("://")
    host, slash, path = rest.partition("/")
    version = source.get("vcs_info")
    commit = version.get("commit_id") if isinstance(version, dict) else None
    return f"{scheme}{colon}{host.rpartition('@')[2]}{slash}{path}" + (f"@{commit}" if isinstance(commit, str) else "")


def _has_hashes(distribution: importlib_metadata.Distribution) -> bool:
    lines = _text(distribution, "RECORD").splitlines()
    modules = [line for line in lines if line.partition(",")[0].endswith(".py")]
    return bool(modules) and all(",sha256=" in line for line in modules)


def _text(distribution: importlib_metadata.Distribution, file: str) -> str:
    try:
        return distribution.read_text(file) or ""
    except (OSError, UnicodeDecodeError):
        return ""


def _unmet(requires: Iterable[str]) -> str:
    """Return why the running core does not satisfy a requirement, or an empty string if it satisfies all."""
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            return f"its requirement `{text}` is invalid"
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if applies and not requirement.specifier.contains(__version__, prereleases=True):
            return f"it requires {_CORE}{requirement.specifier}, but {_CORE} {__version__} is installed"
    return ""


def _missing(distribution: importlib_metadata.Distribution, extras: Iterable[str], path: list[str]) -> str:
    """Return why an extra that an entry point requires is not installed, or an empty string if all are."""
    try:
        return _missing_extra(distribution, extras, path, set())
    except (ValueError, TypeError) as error:
        return f"the requirements of its extras cannot be read: {error}"


def _missing_extra(
    distribution: importlib_metadata.Distribution, extras: Iterable[str], path: list[str], seen: set[tuple[str, str]]
) -> str:
    known = {canonicalize_name(extra) for extra in distribution.metadata.get_all("Provides-Extra") or ()}
    for extra in {canonicalize_name(extra) for extra in extras}:
        if extra not in known:
            return f"{distribution.name} does not define the extra `{extra}`"
        if (key := (canonicalize_name(distribution.name), extra)) in seen:
            continue
        seen.add(key)
        for requirement in map(Requirement, distribution.requires or ()):
            marker = requirement.marker
            if marker is None or marker.evaluate({"extra": ""}) or not marker.evaluate({"extra": extra}):
                continue
            found = next(iter(importlib_metadata.Distribution.discover(name=requirement.name, path=path)), None)
            if found is None or not requirement.specifier.contains(found.version, prereleases=True):
                installed = f"{found.version} is installed" if found else "it is not installed"
                needed = f"{requirement.name}{requirement.specifier}"
                return f"the extra `{distribution.name}[{extra}]` requires {needed}, but {installed}"
            if problem := _missing_extra(found, requirement.extras, path, seen):
                return problem
    return ""


def _project(requirement: str) -> str:
    """Return the project of a requirement: the text up to the first character that is not part of a name."""
    return canonicalize_name(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])
