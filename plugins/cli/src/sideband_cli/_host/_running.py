"""Running the async part of a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._terminal._printing import notice
from .._terminal._unread_output import unread_output

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function and show log messages as notices.

    Raises:
        BrokenPipeError: if the reader of the output closed the pipe. The function is then cancelled.
    """
    import signal

    import anyio

    async def interruptible() -> T:
        # A receiver of any signal sets a wakeup descriptor for all of them. Without one, an interrupt that arrives just
        # before the event loop waits, or in another thread, goes unnoticed until the loop wakes up.
        receiver = anyio.open_signal_receiver(signal.SIGWINCH)
        with receiver, anyio.CancelScope() as scope, unread_output(scope.cancel) as output:
            try:
                return await main()
            except Exception:
                if not output.closed:
                    raise
        raise BrokenPipeError

    _show_warnings()
    return anyio.run(interruptible)


def _show_warnings() -> None:
    """Clean log messages if logging is not configured, since they may quote text from a skill or a server."""
    import logging

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            notice(f"notice: {record.getMessage()}")

    logging.lastResort = Notices(logging.WARNING)
