"""Read the contribution of a plugin and check that it matches the interface of its kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ..commands import Command, problem_of
from ..hooks._implementations import NoHooks
from ..ops import CapabilityInvalid, Grant, OpFamily, OpSpec, Scope
from ..ops._reach import level_problem
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
        value: the object that its entry point names.
        config: its validated configuration, which is passed if the registration function has a parameter ``config``.

    Returns:
        An ``OpFamily`` for an op plugin, the object with the hooks for a hook plugin, the class for a guard plugin, the
        ``Command`` for a command plugin, and a tuple for other kinds.

    Raises:
        PluginInvalid: if the function is missing, is not a synchronous function, or returned a wrong type.
    """
    if inspect.isasyncgenfunction(inspect.getattr_static(value, "lifespan", None)):
        raise PluginInvalid(record, "`lifespan` is an async generator: decorate it with `@asynccontextmanager`")
    if record.kind == "hook":
        return _hooks(record, value, config)
    if record.kind == "guard" and isinstance(value, type):
        return value
    if record.kind == "tool" and not isinstance(value, ModuleType) and not hasattr(value, "sideband_tools"):
        return _tools(record, (value,))
    registered = _registered(record, value, config)
    return _family(record, registered, config) if record.kind == "op" else _CHECKS[record.kind](record, registered)


def declared_backends(record: PluginRecord, value: Any) -> tuple[str, ...]:
    """Return the event loops that the plugin declares to support; by default all.

    Raises:
        PluginInvalid: if the declaration is invalid.
    """
    declared = getattr(value, "backends", _BACKENDS)
    if isinstance(declared, str) or not isinstance(declared, Sequence | set | frozenset):
        raise PluginInvalid(record, f"`backends` must be a tuple of names such as {_BACKENDS!r}, got {declared!r}")
    for name in declared:
        if name not in _BACKENDS:
            raise PluginInvalid(record, f"`backends` has an unknown name {name!r}{did_you_mean(str(name), _BACKENDS)}")
    return tuple(sorted(declared))


def _hooks(record: PluginRecord, value: Any, config: Any) -> Any:
    if hasattr(value, KINDS["hook"].function):
        value = _registered(record, value, config)
    if isinstance(value, type):
        raise PluginInvalid(record, f"its value is the class `{value.__name__}`; use an instance of it, or a module")
    return NoHooks() if value is None else value


def _registered(record: PluginRecord, value: Any, config: Any) -> Any:
    name = KINDS[record.kind].function
    function = getattr(value, name, None)
    if function is None:
        public = (attribute for attribute in dir(value) if not attribute.startswith("_"))
        named = record.file or record.value or getattr(value, "__name__", type(value).__name__)
        raise PluginInvalid(record, f"`{named}` has no `{name}`{did_you_mean(name, public) or _remedy(value)}")
    if not callable(function):
        raise PluginInvalid(record, f"`{name}` must be a function, got {_described(function)}")
    if inspect.iscoroutinefunction(function):
        raise PluginInvalid(record, f"`{name}` must be `def`, not `async def`")
    return function(config) if _takes_config(function) else function()


def _remedy(value: Any) -> str:
    """Return what to define, or which module is meant if the plugin's value is a package with a module ``plugin``."""
    name = f"{getattr(value, '__name__', '')}.plugin"
    found = hasattr(value, "__path__") and find_spec(name) is not None
    if found:
        return f"; use its module `{name}` (`import {name}`)"
    return "; define this function there, or correct the entry point"


def _takes_config(function: Callable[..., Any]) -> bool:
    """Return whether the function has a parameter ``config``."""
    try:
        return "config" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False


def _family(record: PluginRecord, registered: Any, config: Any) -> OpFamily:
    family = _own(record, registered, OpFamily, "its family")
    if not isinstance(family.ops, tuple) or not family.ops:
        raise PluginInvalid(record, f"the ops of its family must be a non-empty tuple, got {_described(family.ops)}")
    for spec in family.ops:
        if not isinstance(spec, OpSpec):
            raise PluginInvalid(record, f"its ops include {_described(spec)}; decorate the handler with `@op`")
        if spec.family != record.name:
            raise PluginInvalid(record, f"its op `{spec.name}` is outside its namespace `{record.name}.`")
    _check_unique(record, family.ops, "duplicate op `{}`")
    _check_parts(record, family)
    _check_uses(record, family)
    if family.errors:
        _check_errors(record, family)
    for spec in family.ops:
        if (problem := level_problem(spec, family.scope)) is not None:
            raise PluginInvalid(record, f"its op `{spec.name}`: {problem}")
        if config is None and spec.configured:
            named = " and ".join(f"`{name}`" for name in sorted(spec.configured))
            problem = f"{named} takes `config`, but the plugin has no `Config`; define one, or remove the parameter"
            raise PluginInvalid(record, f"its op `{spec.name}`: {problem}")
    return family


def _check_parts(record: PluginRecord, family: OpFamily) -> None:
    if family.scope is not None and not (isinstance(family.scope, type) and issubclass(family.scope, Scope)):
        raise PluginInvalid(record, f"its `scope` must be a subclass of Scope, got {_described(family.scope)}")
    if family.sdk is not None and not (isinstance(family.sdk, Path) and family.sdk.is_file()):
        raise PluginInvalid(record, f"its `sdk` must be the Path of a file, but {family.sdk!r} is not")
    if family.sdk is not None and record.file:
        problem = "a local file has no `sdk`, since only this file is trusted; make it a package"
        raise PluginInvalid(record, problem)
    if family.credentials is not None and not callable(getattr(family.credentials, "resolve", None)):
        raise PluginInvalid(record, f"its `credentials` has no method `resolve`: {_described(family.credentials)}")


def _check_uses(record: PluginRecord, family: OpFamily) -> None:
    if not all(isinstance(one, str) for one in family.uses):
        raise PluginInvalid(record, f"its `uses` must be a list of capabilities, got {_described(family.uses)}")
    try:
        Grant.parse(family.uses)
    except CapabilityInvalid as error:
        raise PluginInvalid(record, f"its `uses` has an invalid capability: {error.message}") from error


def _check_errors(record: PluginRecord, family: OpFamily) -> None:
    from ._family_errors import errors_problem  # only families with errors of their own need it

    if (problem := errors_problem(family)) is not None:
        raise PluginInvalid(record, problem)


def _guard(record: PluginRecord, registered: Any) -> type:
    guards = (registered,) if isinstance(registered, type) else _items(record, registered)
    if len(guards) > 1:
        raise PluginInvalid(record, "`sideband_guards` returned several guards; give each its own entry point")
    if not isinstance(guards[0], type):
        raise PluginInvalid(record, f"`sideband_guards` must return a class, got {_described(guards[0])}")
    return guards[0]


def _command(record: PluginRecord, registered: Any) -> Command:
    command = _own(record, registered, Command, "its command")
    if (problem := problem_of(command)) is not None:
        raise PluginInvalid(record, problem)
    return command


def _stores(record: PluginRecord, registered: Any) -> tuple[StoreSpec, ...]:
    stores = tuple(_own(record, store, StoreSpec, "its store") for store in _items(record, registered))
    for store in stores:
        if inspect.iscoroutinefunction(store.open) or inspect.isasyncgenfunction(store.open):
            raise PluginInvalid(record, "`open` of its store must be decorated with `@asynccontextmanager`")
    return stores


def _tools(record: PluginRecord, registered: Any) -> tuple[Any, ...]:
    from ..tools import Tool, is_tool_source  # circular import

    items = _items(record, registered)
    tools = [one for one in items if isinstance(one, Tool)]
    sources = [one for one in items if not isinstance(one, Tool)]
    for source in sources:
        if not is_tool_source(source):
            hint = "decorate the function with `@tool`, or return a ToolSource with a valid `name` and `scope`"
            raise PluginInvalid(record, f"`sideband_tools` returned {_described(source)}; {hint}")
    for one in tools:
        if not isinstance(one.name, str):
            raise PluginInvalid(record, f"the name of its tool must be a text, got {_described(one.name)}")
    _check_unique(record, tools, "duplicate tool `{}`")
    _check_unique(record, sources, "duplicate source of tools `{}`")
    return items


def _named(*methods: str) -> Callable[[PluginRecord, Any], tuple[Any, ...]]:
    """Return a check for objects that have a ``name`` and these methods."""

    def check(record: PluginRecord, registered: Any) -> tuple[Any, ...]:
        function = KINDS[record.kind].function
        items = _items(record, registered)
        for item in items:
            if not isinstance(getattr(item, "name", None), str):
                raise PluginInvalid(record, f"`{function}` returned {_described(item)}, which has no `name`")
            for method in methods:
                if not callable(getattr(item, method, None)):
                    raise PluginInvalid(record, f"`{function}` returned {_described(item)}, which has no `{method}`")
        _check_unique(record, items, f"`{function}` returned two objects with the name `{{}}`")
        return items

    return check


def _loaders(record: PluginRecord, registered: Any) -> tuple[Any, ...]:
    loaders = _named("load")(record, registered)
    for loader in loaders:
        with suppress(ValueError):  # a callable without a signature
            signature = inspect.signature(loader.load)
            arguments = {"ctx": None} if "ctx" in signature.parameters else {}
            try:
                signature.bind(None, **arguments)
            except TypeError:
                problem = f"`load` of its loader `{loader.name}` must take `(sources)` or `(sources, ctx)`"
                raise PluginInvalid(record, f"{problem}, got `{signature}`") from None
    return loaders


def _items(record: PluginRecord, registered: Any) -> tuple[Any, ...]:
    function = KINDS[record.kind].function
    if not isinstance(registered, list | tuple):
        raise PluginInvalid(record, f"`{function}` must return a list, got {_described(registered)}")
    if not registered and record.kind != "tool":  # tools may depend on the configuration
        raise PluginInvalid(record, f"`{function}` returned an empty list")
    return tuple(registered)


def _own(record: PluginRecord, registered: Any, kind: type[T], what: str) -> T:
    """Return the registered object, after checking its type and name."""
    if not isinstance(registered, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        function = KINDS[record.kind].function
        raise PluginInvalid(record, f"`{function}` must return {article} {kind.__name__}, got {_described(registered)}")
    if registered.name != record.name:
        raise PluginInvalid(
            record,
            f"{what} is named `{registered.name}`, but its entry point `{record.name}`; use one name for both",
        )
    return registered


def _check_unique(record: PluginRecord, named: Iterable[Any], problem: str) -> None:
    seen = set()
    for one in named:
        if one.name in seen:
            raise PluginInvalid(record, problem.format(one.name))
        seen.add(one.name)


def _described(value: Any) -> str:
    """Return a description of a value for messages: its type, and its repr if that is short."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class `{value.__name__}`"
    text = repr(value) if isinstance(value, str | int | float | tuple | list | dict) else ""
    kind = type(value).__name__
    return f"a {kind} ({text})" if 0 < len(text) <= 60 else f"a {kind}"


_CHECKS: Mapping[str, Callable[[PluginRecord, Any], Any]] = {
    "guard": _guard,
    "secrets": _named("open"),
    "provider": _named("models", "stream"),
    "loader": _loaders,
    "store": _stores,
    "sandbox": _named("probe", "launch"),
    "command": _command,
    "tool": _tools,
}
