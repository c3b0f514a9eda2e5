"""Running the async part of a command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._terminal._printing import notice

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function and show log messages as notices."""
    import anyio

    _show_warnings()
    return anyio.run(main)


def _show_warnings() -> None:
    """Clean log messages if logging is not configured, since they may quote text from a skill or a server."""
    import logging

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            notice(f"notice: {record.getMessage()}")

    logging.lastResort = Notices(logging.WARNING)
