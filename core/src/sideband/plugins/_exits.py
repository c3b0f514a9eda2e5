"""Enter context managers on an exit stack without creating cycles of exception contexts."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")


async def enter(stack: AsyncExitStack, manager: AbstractAsyncContextManager[T]) -> T:
    """Enter ``manager`` on ``stack`` like ``enter_async_context``, but allow its exit to re-raise the given error.

    Task groups re-raise it. If another error is being handled, for instance because a host is closed after a
    cancellation, ``AsyncExitStack`` makes such an error its own ``__context__``, and the next stack that follows the
    chain loops forever. Here, a manager that re-raises the error is treated as one that does not suppress it.

    Args:
        stack: the stack that exits the manager.
        manager: the manager to enter.

    Example:
        >>> async with AsyncExitStack() as stack:
        ...     tasks = await enter(stack, anyio.create_task_group())
    """
    value = await manager.__aenter__()

    async def exit_manager(
        kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await manager.__aexit__(kind, error, trace)
        except BaseException as raised:
            if raised is error:
                return False
            raise

    stack.push_async_exit(exit_manager)
    return value
