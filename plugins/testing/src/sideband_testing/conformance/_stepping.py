"""Drive a coroutine from one suspension to the next, and act at a chosen one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from functools import wraps
from typing import Any

import anyio
from attrs import define


@define
class Steps:
    """Counts the suspensions of coroutines, and calls functions at them.

    Attributes:
        count: the number of suspensions so far.
        running: the number of coroutines that it drives now.
        thrown: the number of exceptions that the event loop raised in them, such as a cancellation.
        on_suspend: called with the number of a suspension, from 1, just before the coroutine waits.
        on_resume: called with the number of a suspension just before the coroutine continues after it; 0 at its start.
    """

    on_suspend: Callable[[int], object] | None = None
    on_resume: Callable[[int], object] | None = None
    count: int = 0
    running: int = 0
    thrown: int = 0

    def watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return an async function like ``function``, whose suspensions are counted."""

        @wraps(function)
        async def watched(*args: Any, **kwargs: Any) -> Any:
            return await _Stepped(function(*args, **kwargs), self)

        return watched

    def watch_generator(self, function: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
        """Return a function like ``function``, which returns an async generator, whose suspensions are counted."""

        @wraps(function)
        async def watched(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            generator = function(*args, **kwargs)
            try:
                while True:
                    try:
                        yield await _Stepped(generator.__anext__(), self)
                    except StopAsyncIteration:
                        return
            finally:
                close = getattr(generator, "aclose", None)
                if close is not None:
                    await close()

        return watched


async def cancel_at(number: int, steps: Steps, act: Callable[[], Awaitable[Any]]) -> None:
    """Run something, and cancel it when what is watched is about to wait for the n-th time."""
    steps.count = 0
    with anyio.CancelScope() as scope:
        steps.on_suspend = lambda found: scope.cancel() if found == number else None
        try:
            await act()
        finally:
            steps.on_suspend = None


class _Stepped:
    """Awaits something, and reports each suspension. The event loop sees what it would see without it."""

    def __init__(self, awaited: Awaitable[Any], steps: Steps) -> None:
        self._awaited = awaited
        self._steps = steps

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._steps
        inner = self._awaited.__await__()
        resume: Callable[..., Any] = inner.send
        value: Any = None
        steps.running += 1
        try:
            if steps.on_resume is not None and not steps.count:
                steps.on_resume(0)
            while True:
                try:
                    waited_for = resume(value)
                except StopIteration as ended:
                    return ended.value
                steps.count += 1
                number = steps.count
                if steps.on_suspend is not None:
                    steps.on_suspend(number)
                try:
                    answer = yield waited_for
                except BaseException as error:  # noqa: BLE001  whatever the loop throws is for the coroutine
                    steps.thrown += 1
                    resume, value = inner.throw, error
                else:
                    resume, value = inner.send, answer
                if steps.on_resume is not None:
                    steps.on_resume(number)
        finally:
            steps.running -= 1


def chosen(end: int, limit: int, *, first: int = 1) -> list[int]:
    """Return all numbers from ``first`` to ``end``, or ``limit`` of them at equal distances, with both ends.

    Example:
        >>> chosen(3, 8), chosen(100, 4)
        ([1, 2, 3], [1, 34, 67, 100])
    """
    numbers = range(first, end + 1)
    if len(numbers) <= limit:
        return list(numbers)
    return sorted({first + round(number * (end - first) / (limit - 1)) for number in range(limit)})
