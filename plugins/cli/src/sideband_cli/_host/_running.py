"""Running the async part of a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._terminal._printing import notice

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function and show log messages as notices."""
    import signal

    import anyio

    async def interruptible() -> T:
        # A receiver of any signal sets a wakeup descriptor for all of them. Without one, an interrupt that arrives just
        # before the event loop waits, or in another thread, goes unnoticed until the loop wakes up.
        with anyio.open_signal_receiver(signal.SIGWINCH):
            return await main()

    _show_warnings()
    return anyio.run(interruptible)


def _show_warnings() -> None:
    """Clean log messages if logging is not configured, since they may quote text from a skill or a server."""
    import logging

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            notice(f"notice: {record.getMessage()}")

    logging.lastResort = Notices(logging.WARNING)
