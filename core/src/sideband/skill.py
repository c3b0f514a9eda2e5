"""What a skill imports: the ``tool`` mark, and the op families of the host.

    from sideband.skill import tool, http, sql

A family is what the host generated for it (``sideband sdk stubs`` writes its types), or, where nothing was generated, a
stand-in that sends any op by keyword. The standard library only: workers have nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, overload

from .workers.runtime import OpError, current_call, running

__all__ = ["OpError", "capabilities", "dispatch", "tool"]

_Function = TypeVar("_Function", bound=Callable[..., Awaitable[Any]])
_WITHOUT_ANSWER = frozenset({"progress.report"})


@overload
def tool(function: _Function, /) -> _Function: ...
@overload
def tool(*, timeout: float | None = None) -> Callable[[_Function], _Function]: ...
def tool(function: Any = None, /, *, timeout: float | None = None) -> Any:
    """Mark an ``async def`` as a tool, which a model or a user may call.

    It stays the function that it is. Its signature gives the schema, its docstring the description.

    Args:
        function: what is marked.
        timeout: seconds that one call may take; without it, the skill's or the host's default holds.

    Example:
        >>> @tool
        ... async def greet(name: str) -> str:
        ...     '''Say hello.
        ...
        ...     Args:
        ...         name: whom to greet
        ...     '''
        ...     return f"Hello, {name}!"
        >>> @tool(timeout=300)
        ... async def crawl(site: str) -> list[str]:
        ...     '''All pages of a site.'''
    """

    def mark(marked: _Function) -> _Function:
        marked.__sideband_tool__ = {"timeout": timeout}  # type: ignore[attr-defined]
        return marked

    return mark if function is None else mark(function)


async def dispatch(op: str, params: Mapping[str, Any] | None = None, *, answer: bool = True) -> Any:
    """Ask the host for an op. The functions of the families are thin wrappers around this.

    Args:
        op: its name, ``family.verb``.
        params: its parameters, as JSON data and ``bytes``.
        answer: whether to wait for the answer; ``False`` for ops that are fire-and-forget, which have none.

    Returns:
        The op's result, as plain data.

    Raises:
        OpError: it was refused, or it failed; ``code`` tells which.
        RuntimeError: there is no host, or the caller belongs to no call.

    Example:
        >>> page = await dispatch("http.get", {"url": "https://example.org"})
    """
    runtime, call = running(op)
    if answer and op not in _WITHOUT_ANSWER:
        return await runtime.dispatches.run(call, op, params or {})
    runtime.dispatches.tell(call, op, params or {})
    return None


def capabilities() -> tuple[str, ...]:
    """The rights of the current call, as text: to explain to a user what can't be done. The host alone decides."""
    call = current_call.get()
    return () if call is None else call.capabilities


class _Family:
    """Stands in for a family that was not generated: any verb, by keyword."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        op = f"{self._name}.{verb}"

        async def send(*positional: Any, **params: Any) -> Any:
            if positional:
                raise TypeError(f"{op} takes keyword arguments only here: {op}(name=value)")
            return await dispatch(op, params)

        send.__name__ = send.__qualname__ = op
        return send

    def __repr__(self) -> str:
        return f"<op family {self._name}>"


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"sideband_sdk.{name}"
    try:
        from importlib import import_module  # noqa: PLC0415  only when a family is used

        family: Any = import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name not in ("sideband_sdk", module):
            raise
        family = _Family(name)
    globals()[name] = family
    return family
