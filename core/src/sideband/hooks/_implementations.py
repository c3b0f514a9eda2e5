"""From a plugin's object to its hook implementations: found, checked, and ready to be called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from attrs import frozen

from ..suggestions import did_you_mean
from ._errors import HookInvalid
from ._order import PROJECT, Placed, wishes_of
from ._spec import HookSpec

_PLUGGY_MARK = f"{PROJECT}_impl"
_SIGNATURES = (["event"], ["event", "ctx"])


@frozen
class Implementation(Placed):
    """One plugin's implementation of one hook, ready to be called.

    Attributes:
        call: takes an event; gives its answer, or an awaitable of it.
    """

    call: Callable[[Any], Any]


def bundle(plugin: str, implementation: object, specs: Mapping[str, HookSpec]) -> ModuleType:
    """The hook functions of ``implementation``, and nothing else, in a namespace of their own.

    The namespace is new, because pluggy holds two objects that compare equal for one plugin, as two guards of a
    frozen class do; and a module, because pluggy binds functions that it finds on any other object.

    Raises:
        HookInvalid: everything that is wrong with them.
    """
    if inspect.isclass(implementation):
        raise HookInvalid(plugin, [f"`{implementation.__name__}` is a class; register an instance of it"])
    namespace = ModuleType(plugin)
    problems: list[str] = []
    for name, function in _candidates(implementation, specs):
        found = list(_problems(name, function, specs))
        problems += found
        if not found:
            setattr(namespace, name, function)
    if not problems and not any(name in specs for name in vars(namespace)):
        problems.append("it has no function marked with @hookimpl")
    if problems:
        raise HookInvalid(plugin, problems)
    return namespace


def _candidates(implementation: object, specs: Mapping[str, HookSpec]) -> Iterator[tuple[str, Any]]:
    """What is marked as an implementation, and what looks as if its author forgot to."""
    for name in dir(implementation):
        # Static, so that no property and no __getattr__ of a plugin runs.
        static = inspect.getattr_static(implementation, name, None)
        function = static.__func__ if isinstance(static, staticmethod | classmethod) else static
        marked = inspect.getattr_static(function, _PLUGGY_MARK, None) is not None
        forgotten = name in specs and inspect.isfunction(function) and _is_own(function, implementation)
        if marked or forgotten:
            yield name, getattr(implementation, name)


def _is_own(function: Any, implementation: object) -> bool:
    """Whether a function was written there, rather than imported under this name."""
    return not inspect.ismodule(implementation) or function.__module__ == implementation.__name__


def _problems(name: str, function: Any, specs: Mapping[str, HookSpec]) -> Iterator[str]:
    if name not in specs:
        yield f"there is no hook `{name}`{did_you_mean(name, specs)}"
        return
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        yield f"`{name}` is no plain function, but {type(function).__name__}"
        return
    if wishes_of(function) is None:
        mistake = "uses another decorator than sideband's" if hasattr(function, _PLUGGY_MARK) else "is not marked"
        yield f"`{name}` is named like a hook, but {mistake}; mark it with @hookimpl, or give it another name"
        return
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield f"`{name}` is a generator; it must be `def` or `async def` and return its answer"
    parameters = inspect.signature(function).parameters
    if list(parameters) not in _SIGNATURES:
        unknown = next((one for one in parameters if one not in ("event", "ctx")), None)
        hint = did_you_mean(unknown, ("event", "ctx")) if unknown else ""
        yield f"`{name}` takes ({', '.join(parameters)}), but must take (event) or (event, ctx){hint}"
        return
    for one in parameters.values():
        if one.kind is one.KEYWORD_ONLY:
            yield f"`{name}` takes `{one.name}` by keyword only, but gets it by position"
    yield from _event_problems(specs[name], parameters["event"].annotation, specs)


def _event_problems(spec: HookSpec, annotation: Any, specs: Mapping[str, HookSpec]) -> Iterator[str]:
    """Whether the author had the event of another hook in mind. Annotations are compared by name, never evaluated."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    found = text.rpartition(".")[2]
    if found != spec.event.__name__ and any(found == other.event.__name__ for other in specs.values()):
        yield f"`{spec.name}` is annotated with {found}, but gets {spec.event.__name__}"
