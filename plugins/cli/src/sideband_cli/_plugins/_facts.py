"""What is known about one plugin: from its metadata, and from its code, of which nothing is run that has effects."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._host._load_errors import error_data

if TYPE_CHECKING:
    from sideband.plugins import LoadedPlugin, PluginHost, PluginPolicy, PluginRecord

_LOCATED = "skill"
"""The kind of plugins that are data: they are located, and never imported."""


async def facts_of(plugins: PluginHost, record: PluginRecord) -> dict[str, Any]:
    """Import and validate a plugin if it is allowed and compatible, and return what is known about it as data.

    Neither its lifespan nor its hooks run, and its context cannot cause effects.

    Args:
        plugins: a plugin host that no host uses.
        record: the plugin.
    """
    from sideband.plugins import PluginError, SidebandDeprecationWarning

    loaded: LoadedPlugin | None = None
    error: PluginError | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SidebandDeprecationWarning)
        if record.kind == _LOCATED:
            plugins.locate_skills()
        elif record.state.usable:
            try:
                loaded = await plugins.load(record.kind, record.name, activate=False)
            except PluginError as failure:
                error = failure
    used = [str(one.message) for one in caught if issubclass(one.category, SidebandDeprecationWarning)]
    return {
        **record.as_dict(),
        "package": record.package,
        "imported": loaded is not None,
        "error": error
        and {"code": error.code, "message": error.message, "hint": error.hint, "raised": error_data(error)},
        "uses": list(getattr(loaded.contribution, "uses", ())) if loaded is not None and record.kind == "op" else [],
        "hooks": list(_hooks(loaded, plugins.policy)) if loaded is not None else [],
        "ops": list(_ops(loaded)) if loaded is not None and record.kind == "op" else [],
        "tools": list(_tools(loaded)) if loaded is not None and record.kind == "tool" else [],
        "provides": list(_named(loaded)) if loaded is not None else [],
        "configuration": list(_configuration(record, loaded, plugins.policy)),
        "deprecations": list(dict.fromkeys(used)),
    }


def _hooks(loaded: LoadedPlugin, policy: PluginPolicy) -> Iterator[dict[str, Any]]:
    """Yield the hooks of a plugin, with what determines its place among the others, which are not imported."""
    from sideband.hooks import HOOK_SPECS, constraints_of

    if loaded.record.kind not in ("guard", "hook"):
        return
    for hook, spec in HOOK_SPECS.items():
        constraints = constraints_of(getattr(loaded.contribution, hook, None))
        if constraints is None:
            continue
        listed = policy.order.get(hook, ())
        yield {
            "hook": hook,
            "kind": spec.kind.value,
            "on_failure": spec.on_failure.value,
            "phase": "guard" if loaded.record.kind == "guard" else "normal",
            "before": list(constraints.before),
            "after": list(constraints.after),
            "level": constraints.level.name.lower(),
            "manifest": listed.index(loaded.name) + 1 if loaded.name in listed else None,
        }


def _ops(loaded: LoadedPlugin) -> Iterator[dict[str, Any]]:
    for spec in loaded.contribution.ops:
        yield {
            "op": spec.name,
            "level": spec.level.name.lower(),
            "lower": bool(spec.lower),
            "requires": spec.requires,
            "undo": spec.undo is not None,
            "internal": spec.internal,
        }


def _tools(loaded: LoadedPlugin) -> Iterator[dict[str, Any]]:
    from sideband.tools import Tool

    for one in loaded.contribution:
        if isinstance(one, Tool):
            yield {"tool": one.name, "level": one.level.name.lower(), "description": one.description}
        else:
            yield {"source": one.name, "scope": one.scope}


def _named(loaded: LoadedPlugin) -> Iterator[str]:
    """Yield the names of what other kinds of plugins provide."""
    found = loaded.contribution
    if loaded.record.kind in ("op", "tool", "hook", "guard"):
        return
    for one in found if loaded.record.kind != "command" else (found,):
        name = getattr(one, "name", None)
        yield name if isinstance(name, str) else type(one).__name__


def _configuration(record: PluginRecord, loaded: LoadedPlugin | None, policy: PluginPolicy) -> Iterator[dict[str, Any]]:
    """Yield each key with its value and its source, without secrets."""
    from ._shown_values import values_of

    sources, table = policy.config_source, policy.config.get(record.name, {})
    for key, value in values_of(None if loaded is None else loaded.config, table).items():
        source = sources.get(f"{record.name}.{key}") or sources.get(record.name, "") if key in table else "default"
        yield {"key": f"plugins.{record.name}.{key}", "value": value, "source": source}
