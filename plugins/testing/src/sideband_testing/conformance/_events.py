"""Events for hooks: valid ones of each hook, and the dispatch of any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs
from sideband.hooks import HOOK_SPECS, Event, HookRegistry, Kind
from sideband.ops import Level, Origin


def sample_event(hook: str, folder: Path) -> Event:
    """Return a valid event of a hook.

    Args:
        hook: the name of the hook.
        folder: an existing folder.
    """
    event = HOOK_SPECS[hook].event
    return event(**_fields(event, folder))


def _fields(cls: type, folder: Path) -> dict[str, Any]:
    hints = get_type_hints(cls)
    required = [one for one in attrs.fields(cls) if one.init and one.default is attrs.NOTHING]
    return {one.name: _sample(hints[one.name], folder) for one in required}


def _sample(kind: Any, folder: Path) -> Any:  # noqa: PLR0911  one line a type
    origin = get_origin(kind) or kind
    if type(None) in get_args(kind):
        return None
    plain = {str: "text", int: 1, float: 1.0, bool: False, Level: Level.MONITORED, Path: folder, Any: "text"}
    if origin in plain:
        return plain[origin]
    if origin is Origin:
        return Origin("user")
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return ()
    if get_args(kind):
        return get_args(kind)[0] if not isinstance(get_args(kind)[0], type) else _sample(get_args(kind)[0], folder)
    return origin(**_fields(origin, folder)) if attrs.has(origin) else origin()


async def dispatch(hooks: HookRegistry, event: Any) -> Any:
    """Dispatch an event, and return its outcome: a ``Decision`` for one that is decided."""
    methods = {
        Kind.UPDATE: hooks.update,
        Kind.DECIDE: hooks.decide,
        Kind.COLLECT: hooks.collect,
        Kind.FIRST: hooks.first,
        Kind.OBSERVE: hooks.observe,
    }
    method: Any = methods[event.kind]
    return await method(event)
