"""Handling of Ctrl-C and of termination signals during a run."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from attrs import define
from sideband.command_line import on_termination

if TYPE_CHECKING:
    from sideband_agent import Agent


@define
class Interrupts:
    """The interrupts that a run received.

    Attributes:
        count: their number.
        terminated: whether one of them was a termination signal of another process.
    """

    count: int = 0
    terminated: bool = False


@asynccontextmanager
async def aborting_on_interrupt(agent: Agent, show: Callable[[str], None]) -> AsyncIterator[Interrupts]:
    """Abort the run at the first interrupt, keeping its messages, and the command at the second.

    A termination signal is an interrupt, too.

    Args:
        agent: the agent that runs.
        show: prints a line, below text that is still being streamed.

    Raises:
        KeyboardInterrupt: at the second interrupt.
    """
    from anyio import create_task_group, open_signal_receiver

    interrupts = Interrupts()
    failure: Exception | None = None

    def interrupt(reason: str) -> None:
        interrupts.count += 1
        if interrupts.count > 1:
            tasks.cancel_scope.cancel()
        else:
            show("aborting the run; press Ctrl-C again to exit immediately")
            agent.abort(reason)

    def terminate() -> None:
        interrupts.terminated = True
        interrupt("terminated")

    async def watch() -> None:
        with open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                interrupt("interrupted")

    async with create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            with on_termination(terminate):
                yield interrupts
        except Exception as error:  # noqa: BLE001  re-raised outside the task group, which would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if interrupts.count > 1:
        raise KeyboardInterrupt
