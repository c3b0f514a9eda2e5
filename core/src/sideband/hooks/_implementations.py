"""Find and check the hook implementations of a plugin's object."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import MemberDescriptorType, ModuleType
from typing import Any

from attrs import frozen

from ..contexts import PluginContext
from ..suggestions import did_you_mean
from ._errors import HookInvalid
from ._event import Event
from ._order import PROJECT, Placed, constraints_of
from ._spec import HookSpec

_PLUGGY_MARK = f"{PROJECT}_impl"
_SIGNATURES = (["event"], ["event", "ctx"])


@frozen
class Implementation(Placed):
    """One plugin's implementation of one hook, ready to be called.

    Attributes:
        function: takes an event and maybe a context, and returns an answer, or an awaitable of one.
        context: returns the context for an event, before it is adapted to an agent; ``None`` if it takes none.
        package: the distribution and version of the plugin, for messages; empty if unknown.
    """

    function: Callable[..., Any]
    context: Callable[[Event], PluginContext | None] | None
    package: str = ""


class NoHooks:
    """The hooks of a plugin whose configuration needs no hooks."""


def bundle(plugin: str, implementation: object, specs: Mapping[str, HookSpec]) -> ModuleType:
    """Return a new namespace that holds only the hook functions of ``implementation``.

    It is a new object, because pluggy treats objects that compare equal as one plugin, and two guards of a frozen
    class may compare equal. It is a module, because pluggy binds functions that it finds on any other object.

    Raises:
        HookInvalid: if an implementation is invalid; the error lists all problems.
    """
    if inspect.isclass(implementation):
        raise HookInvalid(plugin, [f"`{implementation.__name__}` is a class; register an instance of it"])
    namespace = ModuleType(plugin)
    if isinstance(implementation, NoHooks):
        return namespace
    problems: list[str] = []
    for name, function in _candidates(implementation, specs):
        found = list(_problems(name, function, specs))
        problems += found
        if not found:
            setattr(namespace, name, function)
    if not problems and not any(name in specs for name in vars(namespace)):
        problems.append("no function is marked with @hookimpl")
    if problems:
        raise HookInvalid(plugin, problems)
    return namespace


def _candidates(implementation: object, specs: Mapping[str, HookSpec]) -> Iterator[tuple[str, Any]]:
    """Yield the names and functions that are marked as implementations, or look like ones with a forgotten mark."""
    for name in dir(implementation):
        # A static lookup does not run properties or `__getattr__` of the plugin.
        static = inspect.getattr_static(implementation, name, None)
        if isinstance(static, MemberDescriptorType):  # what is in a slot of the instance
            static = getattr(implementation, name, None)
        function = static.__func__ if isinstance(static, staticmethod | classmethod) else static
        marked = inspect.getattr_static(function, _PLUGGY_MARK, None) is not None
        forgotten = name in specs and inspect.isfunction(function) and _is_own(function, implementation)
        if marked or forgotten:
            yield name, getattr(implementation, name)


def _is_own(function: Any, implementation: object) -> bool:
    """Return whether a function was defined in the module, not imported into it."""
    return not inspect.ismodule(implementation) or function.__module__ == implementation.__name__


def _problems(name: str, function: Any, specs: Mapping[str, HookSpec]) -> Iterator[str]:
    if name not in specs:
        yield f"unknown hook `{name}`{did_you_mean(name, specs)}"
        return
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        yield f"`{name}` must be a function, not {type(function).__name__}"
        return
    if (constraints := constraints_of(function)) is None:
        mistake = "does not use sideband's decorator" if hasattr(function, _PLUGGY_MARK) else "is not marked"
        yield f"`{name}` has the name of a hook, but {mistake}; mark it with @hookimpl or rename it"
        return
    if constraints.level and name not in ("op_call", "tool_call"):
        yield f"`{name}` is called for events of all levels; remove `level` from its @hookimpl"
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield f"`{name}` is a generator; it must return its answer"
    parameters = inspect.signature(function).parameters
    if list(parameters) not in _SIGNATURES:
        unknown = next((one for one in parameters if one not in ("event", "ctx")), None)
        hint = did_you_mean(unknown, ("event", "ctx")) if unknown else ""
        yield f"`{name}` takes ({', '.join(parameters)}), but must take (event) or (event, ctx){hint}"
        return
    for one in parameters.values():
        if one.kind is one.KEYWORD_ONLY:
            yield f"`{name}` takes `{one.name}` as a keyword-only argument, but it is passed by position"
    yield from _event_problems(specs[name], parameters["event"].annotation, specs)


def _event_problems(spec: HookSpec, annotation: Any, specs: Mapping[str, HookSpec]) -> Iterator[str]:
    """Yield a problem if the annotation names another hook's event. Annotations are compared by name, not evaluated."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    found = text.rpartition(".")[2]
    if found != spec.event.__name__ and any(found == other.event.__name__ for other in specs.values()):
        yield f"`{spec.name}` is annotated with {found}, but receives {spec.event.__name__}"
