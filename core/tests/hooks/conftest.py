from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from sideband.hooks import HookRegistry, HookReport, Phase, hookimpl


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def reports() -> list[HookReport]:
    return []


@pytest.fixture
def make_hooks(reports) -> Callable[..., HookRegistry]:
    def make(*guards: Any, normal: Iterable[Any] = (), observers: Iterable[Any] = (), **settings: Any) -> HookRegistry:
        """Return a registry with plugins, each ``(name, function)``; the function has the name of its hook."""
        hooks = HookRegistry(report=reports.append, **settings)
        for phase, plugins in ((Phase.GUARD, guards), (Phase.NORMAL, normal), (Phase.OBSERVER, observers)):
            for name, function in plugins:
                marked = function if hasattr(function, "sideband_impl") else hookimpl(function)
                hooks.register(name, SimpleNamespace(**{function.__name__: marked}), phase=phase)
        return hooks

    return make


@pytest.fixture
def answering() -> Callable[..., Any]:
    def make(hook: str, answer: Any, seen: list[Any] | None = None) -> Any:
        """Return an implementation of ``hook`` that returns ``answer``, or the result of calling it with the event."""

        async def implementation(event):
            if seen is not None:
                seen.append(event)
            return answer(event) if callable(answer) else answer

        implementation.__name__ = hook
        return implementation

    return make


@pytest.fixture
def failing() -> Callable[..., Any]:
    def make(hook: str, error: BaseException | None = None) -> Any:
        """Return an implementation of ``hook`` that raises."""

        def implementation(event):
            raise error or ValueError("boom")

        implementation.__name__ = hook
        return implementation

    return make
