"""What changes between two locks, or between a lock and an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ._model import DistLock, DistLockPackage, DistLockPlugin


def differences(old: DistLock, new: DistLock) -> list[dict[str, Any]]:
    """Return what changes, each with ``change``, ``what``, ``name``, and ``old`` and ``new`` values.

    Changes are of packages (added, removed, version, hash, files) and of plugins (added, removed, entry point,
    order, rights of its own, ops, levels of ops), and of locked settings.
    """
    packages = [{f"{one.name}{one.marker and f' ({one.marker})'}": one for one in lock.packages} for lock in (old, new)]
    plugins = [{f"{one.kind}.{one.name}": one for one in lock.plugins} for lock in (old, new)]
    settings = [dict(_flat(lock.settings.model_dump(mode="json", exclude_unset=True))) for lock in (old, new)]
    return [
        *_compared("package", packages, _package_parts, lambda one: one.version),
        *_compared("plugin", plugins, _plugin_parts, lambda one: f"{one.package}: {_summary(one)}"),
        *_compared("setting", settings, lambda one: {"value": one}, lambda one: one),
    ]


def difference_text(difference: Mapping[str, Any]) -> str:
    """Return one line for a person."""
    what, name, change = difference["what"], difference["name"], difference["change"]
    if change == "added":
        return f"+ {what} {name}: {difference['new']}"
    if change == "removed":
        return f"- {what} {name}: {difference['old']}"
    return f"~ {what} {name}: {change}: {difference['old']} -> {difference['new']}"


def _compared(
    what: str,
    sides: Sequence[Mapping[str, Any]],
    parts: Callable[[Any], Mapping[str, Any]],
    shown: Callable[[Any], Any],
) -> Iterator[dict[str, Any]]:
    old, new = sides
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield {"change": "added", "what": what, "name": name, "old": None, "new": shown(new[name])}
        elif name not in new:
            yield {"change": "removed", "what": what, "name": name, "old": shown(old[name]), "new": None}
        else:
            before, after = parts(old[name]), parts(new[name])
            for part in sorted(before.keys() | after.keys()):
                if before.get(part) != after.get(part):
                    values = {"old": before.get(part), "new": after.get(part)}
                    yield {"change": part, "what": what, "name": name, **values}


def _package_parts(package: DistLockPackage) -> dict[str, Any]:
    lines = [line.partition("  ") for line in package.files.splitlines()]
    files = {path: digest for digest, _, path in lines}
    changed: dict[str, Any] = {"version": package.version, "path": package.path or None}
    changed["hash"] = ", ".join(sorted(digest for digest, _ in package.wheel_hashes())) or None
    return changed | {f"file {path}": digest for path, digest in files.items()}


def _plugin_parts(plugin: DistLockPlugin) -> dict[str, Any]:
    ops = {f"op {name}": text for name, text in plugin.ops.items()}
    rights = {f"right {one}": "declared" for one in plugin.uses}
    return {"value": plugin.value, "package": plugin.package, "order": plugin.order, **ops, **rights}


def _summary(plugin: DistLockPlugin) -> str:
    parts = [f"{name} {text}" for name, text in plugin.ops.items()] + [f"uses {one}" for one in plugin.uses]
    return ", ".join(parts) or plugin.value


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
