"""Running what a command does with its host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._terminal._printing import notice

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function to its end. What is logged meanwhile is shown as notices."""
    import anyio

    _show_warnings()
    return anyio.run(main)


def _show_warnings() -> None:
    """Clean what logging shows where nobody has configured it: it may quote what a skill or a server said."""
    import logging

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            notice(f"notice: {record.getMessage()}")

    logging.lastResort = Notices(logging.WARNING)
