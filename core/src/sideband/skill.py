"""The module that skills import: the ``tool`` decorator and the op families of the host.

    from sideband.skill import tool, http, sql, OpDenied

A family is the module that the host generated for it (``sideband sdk stubs`` writes its types), or, if none was
generated, a proxy that sends any op with keyword arguments. The module of a family also has the classes of its errors
(``except sql.SqlBusy``); those that any op can raise are here. Uses the standard library only, because workers have no
other packages.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._from_host import FromHost
from .workers.runtime import (
    CallRandom,
    EffectInFlight,
    EffectUnknown,
    EgressRefused,
    LimitExceeded,
    OpCancelled,
    OpDenied,
    OpError,
    OpNotFound,
    OpParamsInvalid,
    OpResultInvalid,
    OpTimeout,
    OpUnavailable,
    SecretsClosed,
    current_call,
    random_of_call,
    running,
    start_time,
)

if TYPE_CHECKING:
    import datetime as dt
    import random as _random

    # The families that `sideband sdk stubs` has written beside the skill; all others are `Any`.
    from sideband_sdk import *  # type: ignore[import-not-found]  # noqa: F403

__all__ = [
    "EffectInFlight",
    "EffectUnknown",
    "EgressRefused",
    "FromHost",
    "LimitExceeded",
    "OpCancelled",
    "OpDenied",
    "OpError",
    "OpNotFound",
    "OpParamsInvalid",
    "OpResultInvalid",
    "OpTimeout",
    "OpUnavailable",
    "SecretsClosed",
    "capabilities",
    "dispatch",
    "now",
    "random",
    "tool",
    "uuid",
]

_Function = TypeVar("_Function", bound=Callable[..., Awaitable[Any]])
_WITHOUT_ANSWER = frozenset({"progress.report"})


@overload
def tool(function: _Function, /) -> _Function: ...
@overload
def tool(*, timeout: float | None = None) -> Callable[[_Function], _Function]: ...
def tool(function: Any = None, /, *, timeout: float | None = None) -> Any:
    """Mark an ``async def`` as a tool that models and users may call.

    The function itself is returned unchanged. Its signature defines the schema, its docstring the description.

    Args:
        function: the function to mark.
        timeout: the maximum duration of one call in seconds. The default is that of the skill or the host.

    Example:
        >>> @tool
        ... async def greet(name: str) -> str:
        ...     '''Say hello.
        ...
        ...     Args:
        ...         name: the person to greet
        ...     '''
        ...     return f"Hello, {name}!"
        >>> @tool(timeout=300)
        ... async def crawl(site: str) -> list[str]:
        ...     '''Return the addresses of all pages of a site.'''
    """

    def mark(marked: _Function) -> _Function:
        marked.__sideband_tool__ = {"timeout": timeout}  # type: ignore[attr-defined]
        return marked

    return mark if function is None else mark(function)


async def dispatch(op: str, params: Mapping[str, Any] | None = None, *, answer: bool = True) -> Any:
    """Dispatch an op to the host. The functions of the families are thin wrappers around this function.

    Args:
        op: the name of the op, ``family.verb``.
        params: the parameters, as JSON data and ``bytes``.
        answer: whether to wait for the answer. ``False`` for fire-and-forget ops, which have no answer.

    Returns:
        The op's result, as plain data.

    Raises:
        OpError: if the op was denied (``OpDenied``) or failed. Its class and its ``code`` say why.
        RuntimeError: if there is no host, or the caller does not run inside a call.

    Example:
        >>> page = await dispatch("http.get", {"url": "https://example.org"})
    """
    runtime, call = running(op)
    if answer and op not in _WITHOUT_ANSWER:
        return await runtime.dispatches.run(call, op, params or {})
    runtime.dispatches.notify(call, op, params or {})
    return None


def capabilities() -> tuple[str, ...]:
    """Return the capabilities of the current call as strings.

    Use them to explain to a user why an op is not available. They grant nothing: the host decides.
    """
    call = current_call.get()
    return () if call is None else call.capabilities


random: _random.Random = CallRandom()  # type: ignore[assignment]
"""A ``random.Random`` for the current call. If an interrupted call runs again, it returns the same numbers.

Its seed is recorded, so it must not be used for secrets: use the modules ``secrets`` or ``os`` for them, which are
never seeded. The numbers are the same if they are requested in the same order, which concurrent tasks do not guarantee.
"""


def now() -> dt.datetime:
    """Return the time at which the call began, in UTC. If an interrupted call runs again, it returns the same time.

    Use ``datetime.now(UTC)`` for the current time, and ``time.monotonic()`` to measure a duration.
    """
    return start_time()


def uuid() -> str:
    """Return a new UUID as text, made of numbers from ``random``. If an interrupted call runs again, it is the same.

    Use it to identify what the call creates, such as an order. It is not secret.
    """
    from uuid import UUID  # noqa: PLC0415  only needed when it is called

    return str(UUID(int=random_of_call().getrandbits(128), version=4))


class _Family:
    """A proxy for a family that was not generated. It accepts any verb with keyword arguments."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        if verb[0].isupper():
            raise AttributeError(
                f"`{self._name}.{verb}` is unknown, because the module of `{self._name}` was not generated: "
                "call the skill through a host, write the modules with `sideband sdk stubs`, or catch `OpError` and "
                "compare its `code`"
            )
        op = f"{self._name}.{verb}"

        async def send(*positional: Any, **params: Any) -> Any:
            if positional:
                raise TypeError(f"{op} accepts keyword arguments only: {op}(name=value)")
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
        from importlib import import_module  # noqa: PLC0415  only needed when a family is used

        family: Any = import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name not in ("sideband_sdk", module):
            raise
        family = _Family(name)
    globals()[name] = family
    return family
