"""Running the async part of a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ._output import notice

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

T = TypeVar("T")

_on_termination: list[Callable[[], None]] = []


def run_async(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function and show log messages as notices. A termination signal cancels it, as an interrupt does.

    Raises:
        BrokenPipeError: if the reader of the output closed the pipe. The function is then cancelled.
        Terminated: if a termination signal ended it.
    """
    import signal

    import anyio

    from ._errors import Terminated
    from ._unread_output import unread_output

    terminated = False

    async def interruptible() -> T:
        result: list[T] = []
        failure: BaseException | None = None

        async def watch(*, task_status: TaskStatus[None]) -> None:
            nonlocal terminated
            # A receiver of any signal sets a wakeup descriptor for all of them. Without one, an interrupt that arrives
            # just before the event loop waits, or in another thread, goes unnoticed until the loop wakes up.
            ends = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
            with anyio.open_signal_receiver(signal.SIGWINCH, *ends) as signals:
                task_status.started()
                async for number in signals:
                    if number in ends:
                        terminated = True
                        end = _on_termination[-1] if _on_termination else tasks.cancel_scope.cancel
                        end()

        async with anyio.create_task_group() as tasks:
            await tasks.start(watch)
            with unread_output(tasks.cancel_scope.cancel) as output:
                try:
                    result.append(await main())
                except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  re-raised outside the task group
                    failure = error
            tasks.cancel_scope.cancel()
        if result:
            return result[0]
        if terminated:
            raise Terminated from failure
        if failure is None or (output.closed and isinstance(failure, Exception)):
            raise BrokenPipeError
        raise failure

    _show_warnings()
    return anyio.run(interruptible)


@contextmanager
def on_termination(end: Callable[[], None]) -> Iterator[None]:
    """Call a function at a termination signal, instead of cancelling the command."""
    _on_termination.append(end)
    try:
        yield
    finally:
        _on_termination.remove(end)


def _show_warnings() -> None:
    """Clean log messages if logging is not configured, since they may quote text from a skill or a server."""
    import logging

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            notice(f"notice: {record.getMessage()}")

    logging.lastResort = Notices(logging.WARNING)
