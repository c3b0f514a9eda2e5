"""The plugin that a conformance class tests: its object, and wrappers of it that watch what it does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from inspect import signature
from types import ModuleType, SimpleNamespace
from typing import Any

from attrs import evolve
from sideband import Plugin
from sideband.plugins import EntryPoint, find_entry_points

from ._failing import fail

_HOW_TO_NAME = 'set `plugin = "KIND.NAME"` for an installed plugin, or `plugin = Plugin("KIND", "NAME", module)`'


def entry_points(kind: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of the installed plugins of a kind, which are read once in a process for each path."""
    return tuple(one for one in _all_entry_points(tuple(sys.path)) if one.kind == kind)


@lru_cache(maxsize=8)
def _all_entry_points(_path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    return find_entry_points()


def resolve(plugin: Plugin | str, *, kind: str = "", among: Iterable[Plugin] = ()) -> Plugin:
    """Return an installed plugin as an object of a host.

    Args:
        plugin: a plugin, or ``kind.name`` of an installed one.
        kind: the kind that it must have; empty for any.
        among: plugins that were resolved already. One of the same module has the same object, as in a host.
    """
    found = plugin if isinstance(plugin, Plugin) else _installed(plugin, among)
    if kind and found.kind != kind:
        fail(
            f"{found.kind}.{found.name}",
            expected=f"a plugin of the kind `{kind}`",
            happened=f"its kind is `{found.kind}`",
            remedy="derive the test from the conformance class of its kind",
        )
    return found


def _installed(label: object, among: Iterable[Plugin]) -> Plugin:
    kind, dot, name = str(label).partition(".")
    if not isinstance(label, str) or not dot:
        fail(repr(label), expected="a plugin, or the text `KIND.NAME`", happened="neither", remedy=_HOW_TO_NAME)
    found = [one for one in entry_points(kind) if one.name == name]
    if len(found) != 1:
        claims = ", ".join(f"{one.distribution} {one.version}" for one in found)
        fail(
            label,
            expected="one installed distribution provides it",
            happened=f"several do: {claims}" if found else "none does",
            remedy="uninstall all but one" if found else "install it in this environment, such as `pip install -e .`",
        )
    module, _, attributes = found[0].value.partition(":")
    try:
        value: Any = importlib.import_module(module)
        for attribute in filter(None, attributes.split(".")):
            value = getattr(value, attribute)
    except Exception as error:  # noqa: BLE001  whatever the import raises
        fail(
            label,
            expected=f"`{found[0].value}`, the object of its entry point, can be imported",
            happened=f"{type(error).__name__}: {error}",
            remedy="correct the entry point, or install what the module needs",
        )
    shared = next((one.value for one in among if getattr(one.value, "__wrapped_plugin__", None) is value), value)
    return Plugin(kind, name, shared, found[0].distribution, found[0].version)


def module_of(plugin: Plugin) -> str:
    """Return the name of the module that can be imported to get the plugin; empty for an object in memory."""
    value = plugin.value
    if isinstance(value, ModuleType):
        return value.__name__ if value.__spec__ is not None else ""
    found = next((one for one in entry_points(plugin.kind) if one.name == plugin.name), None)
    return found.value.partition(":")[0] if found is not None and found.distribution == plugin.distribution else ""


def wrapped(plugin: Plugin, changes: Mapping[str, Any]) -> Plugin:
    """Return the plugin with other functions. What else its object has is the same."""
    value = plugin.value
    names = [name for name in dir(value) if not name.startswith("__")]
    own = {name: getattr(value, name) for name in names}
    original = getattr(value, "__wrapped_plugin__", value)
    copy = SimpleNamespace(**{**own, **changes, "__wrapped_plugin__": original, "__name__": _name_of(value)})
    return evolve(plugin, value=copy)


def registering(function: Any, change: Any) -> Any:
    """Return a registration function like another one, whose result ``change`` replaces."""
    if "config" in signature(function).parameters:
        return lambda config: change(function(config))
    return lambda: change(function())


def _name_of(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__))
