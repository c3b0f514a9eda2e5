"""Ctrl-C while an agent is at work."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from attrs import define

if TYPE_CHECKING:
    from sideband_agent import Agent


@define
class Interrupts:
    """How many there were."""

    count: int = 0


@asynccontextmanager
async def aborting_on_interrupt(agent: Agent, tell: Callable[[str], None]) -> AsyncIterator[Interrupts]:
    """Let the first interrupt end the run, whose messages are kept, and the second one the command.

    Args:
        agent: whose run it is.
        tell: shows a line, below the text that the model may be in the middle of.

    Raises:
        KeyboardInterrupt: there was a second one.
    """
    from anyio import create_task_group, open_signal_receiver

    interrupts = Interrupts()
    failure: Exception | None = None

    async def watch() -> None:
        with open_signal_receiver(signal.SIGINT) as signals:
            async for _ in signals:
                interrupts.count += 1
                if interrupts.count > 1:
                    tasks.cancel_scope.cancel()
                    return
                tell("ending the run; once more, and it is left as it is")
                agent.abort("interrupted")

    async with create_task_group() as tasks:
        tasks.start_soon(watch)
        try:
            yield interrupts
        except Exception as error:  # noqa: BLE001  raised again outside of the group, which would wrap it
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if interrupts.count > 1:
        raise KeyboardInterrupt
