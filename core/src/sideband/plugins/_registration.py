"""Reads what a plugin registers, and checks that it is what its kind promises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..commands import Command
from ..ops import OpFamily, OpSpec, Scope
from ..store import StoreSpec
from ..suggestions import did_you_mean
from ._errors import PluginInvalid
from ._kinds import KINDS
from ._records import PluginRecord

_BACKENDS = ("asyncio", "trio")

T = TypeVar("T", OpFamily, Command, StoreSpec)


def read_contribution(record: PluginRecord, value: Any, config: Any = None) -> Any:
    """Call the plugin's registration function and check what it returns.

    Args:
        record: the plugin.
        value: what its entry point names.
        config: its validated configuration, for a registration function that takes it.

    Returns:
        An ``OpFamily`` for an op plugin, the value itself for a hook plugin, the class for a guard plugin, the
        ``Command`` for a command plugin, and a tuple for the others.

    Raises:
        PluginInvalid: the function is missing, is no plain function, or returned something else.
    """
    if inspect.isasyncgenfunction(inspect.getattr_static(value, "lifespan", None)):
        raise PluginInvalid(record, "`lifespan` is an async generator: decorate it with `@asynccontextmanager`")
    if record.kind == "hook":
        return _hooks(record, value)
    if record.kind == "guard" and isinstance(value, type):
        return value
    if record.kind == "tool" and not hasattr(value, "sideband_tools"):
        return _tools(record, (value,))
    return _CHECKS[record.kind](record, _registered(record, value, config))


def declared_backends(record: PluginRecord, value: Any) -> tuple[str, ...]:
    """The event loops that the plugin says it runs on; all, if it says nothing.

    Raises:
        PluginInvalid: what it says names no event loop.
    """
    declared = getattr(value, "backends", _BACKENDS)
    if isinstance(declared, str) or not isinstance(declared, Sequence | set | frozenset):
        raise PluginInvalid(record, f"`backends` is {declared!r}, not a tuple of names such as {_BACKENDS!r}")
    for name in declared:
        if name not in _BACKENDS:
            raise PluginInvalid(record, f"`backends` names {name!r}{did_you_mean(str(name), _BACKENDS)}")
    return tuple(sorted(declared))


def _hooks(record: PluginRecord, value: Any) -> Any:
    if isinstance(value, type):
        raise PluginInvalid(record, f"its value is the class `{value.__name__}`; name an instance of it, or a module")
    return value


def _registered(record: PluginRecord, value: Any, config: Any) -> Any:
    name = KINDS[record.kind].function
    function = getattr(value, name, None)
    if function is None:
        public = (attribute for attribute in dir(value) if not attribute.startswith("_"))
        raise PluginInvalid(
            record, f"`{record.value or type(value).__name__}` has no `{name}`{did_you_mean(name, public)}"
        )
    if not callable(function):
        raise PluginInvalid(record, f"`{name}` is {_described(function)}, not a function")
    if inspect.iscoroutinefunction(function):
        raise PluginInvalid(record, f"`{name}` is `async def`; it returns data, so make it a plain function")
    return function(config) if _takes_config(function) else function()


def _takes_config(function: Callable[..., Any]) -> bool:
    """Whether it has a parameter ``config``: what it registers then depends on the configuration."""
    try:
        return "config" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a callable that does not tell
        return False


def _family(record: PluginRecord, registered: Any) -> OpFamily:
    family = _own(record, registered, OpFamily, "its family")
    if not isinstance(family.ops, tuple) or not family.ops:
        raise PluginInvalid(record, f"its family has {_described(family.ops)} for ops, not a tuple of at least one")
    for spec in family.ops:
        if not isinstance(spec, OpSpec):
            raise PluginInvalid(record, f"its ops include {_described(spec)}; decorate the handler with `@op`")
        if spec.family != record.name:
            raise PluginInvalid(record, f"its op `{spec.name}` is outside its namespace `{record.name}.`")
    _check_unique(record, family.ops, "it has two ops `{}`")
    _check_parts(record, family)
    return family


def _check_parts(record: PluginRecord, family: OpFamily) -> None:
    if family.scope is not None and not (isinstance(family.scope, type) and issubclass(family.scope, Scope)):
        raise PluginInvalid(record, f"its `scope` is {_described(family.scope)}, not a subclass of Scope")
    if family.sdk is not None and not family.sdk.is_file():
        raise PluginInvalid(record, f"its `sdk` names {str(family.sdk)!r}, which is no file")
    if family.credentials is not None and not callable(getattr(family.credentials, "resolve", None)):
        raise PluginInvalid(record, f"its `credentials` is {_described(family.credentials)}, which has no `resolve`")


def _guard(record: PluginRecord, registered: Any) -> type:
    guards = (registered,) if isinstance(registered, type) else _items(record, registered)
    if len(guards) > 1:
        raise PluginInvalid(record, "`sideband_guards` returned several guards; give each an entry point of its own")
    if not isinstance(guards[0], type):
        raise PluginInvalid(record, f"`sideband_guards` returned {_described(guards[0])}; a guard is a class")
    return guards[0]


def _command(record: PluginRecord, registered: Any) -> Command:
    return _own(record, registered, Command, "its command")


def _stores(record: PluginRecord, registered: Any) -> tuple[StoreSpec, ...]:
    return tuple(_own(record, store, StoreSpec, "its store") for store in _items(record, registered))


def _tools(record: PluginRecord, registered: Any) -> tuple[Any, ...]:
    from ..tools import Tool  # tools know plugins

    tools = _items(record, registered)
    for one in tools:
        if not isinstance(one, Tool):
            raise PluginInvalid(
                record, f"`sideband_tools` returned {_described(one)}; decorate the function with `@tool`"
            )
        if one.name.partition(".")[0] != record.name:
            raise PluginInvalid(record, f"its tool `{one.name}` is neither `{record.name}` nor `{record.name}.*`")
    _check_unique(record, tools, "it has two tools `{}`")
    return tools


def _named(*methods: str) -> Callable[[PluginRecord, Any], tuple[Any, ...]]:
    """A check for objects that have a name and these methods."""

    def check(record: PluginRecord, registered: Any) -> tuple[Any, ...]:
        function = KINDS[record.kind].function
        items = _items(record, registered)
        for item in items:
            if not isinstance(getattr(item, "name", None), str):
                raise PluginInvalid(record, f"`{function}` returned {_described(item)}, which has no `name`")
            for method in methods:
                if not callable(getattr(item, method, None)):
                    raise PluginInvalid(record, f"`{function}` returned {_described(item)}, which has no `{method}`")
        _check_unique(record, items, f"`{function}` returned two things called `{{}}`")
        return items

    return check


def _items(record: PluginRecord, registered: Any) -> tuple[Any, ...]:
    function = KINDS[record.kind].function
    if not isinstance(registered, list | tuple):
        raise PluginInvalid(record, f"`{function}` returned {_described(registered)}, not a list")
    if not registered:
        raise PluginInvalid(record, f"`{function}` returned an empty list")
    return tuple(registered)


def _own(record: PluginRecord, registered: Any, kind: type[T], what: str) -> T:
    """What was registered, which is of this kind and called like the entry point."""
    if not isinstance(registered, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        problem = f"`{KINDS[record.kind].function}` returned {_described(registered)}, not {article} {kind.__name__}"
        raise PluginInvalid(record, problem)
    if registered.name != record.name:
        raise PluginInvalid(record, f"{what} is called `{registered.name}`, but its entry point `{record.name}`")
    return registered


def _check_unique(record: PluginRecord, named: Iterable[Any], problem: str) -> None:
    seen = set()
    for one in named:
        if one.name in seen:
            raise PluginInvalid(record, problem.format(one.name))
        seen.add(one.name)


def _described(value: Any) -> str:
    """A value as messages show it: its type, and its text if that is short."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    text = repr(value) if isinstance(value, str | int | float | tuple | list | dict) else ""
    kind = type(value).__name__
    return f"a {kind} ({text})" if 0 < len(text) <= 60 else f"a {kind}"


_CHECKS: Mapping[str, Callable[[PluginRecord, Any], Any]] = {
    "guard": _guard,
    "op": _family,
    "provider": _named("models", "stream"),
    "loader": _named("load"),
    "store": _stores,
    "sandbox": _named("probe", "launch"),
    "command": _command,
    "tool": _tools,
}
