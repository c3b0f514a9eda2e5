"""Entering context managers onto a stack so that leaving them always ends."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


async def enter(stack: AsyncExitStack, manager: AbstractAsyncContextManager[T]) -> T:
    """``stack.enter_async_context(manager)``, for managers that may raise the very error that they are left with.

    Task groups do. While another error is handled, as when a host is closed because it was cancelled, Python's stack
    would make that error its own context, and the next stack that looks for the end of the chain never comes back.
    Here, a manager that raises the same error again counts as one that does not suppress it.

    Args:
        stack: leaves the manager.
        manager: is entered now.

    Example:
        >>> async with AsyncExitStack() as stack:
        ...     tasks = await enter(stack, anyio.create_task_group())
    """
    value = await manager.__aenter__()

    async def leave(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await manager.__aexit__(kind, error, trace)
        except BaseException as raised:
            if raised is error:
                return False
            raise

    stack.push_async_exit(leave)
    return value
