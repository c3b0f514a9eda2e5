"""Workers that die while they work."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
from attrs import define, field
from sideband import Plugin
from sideband.hooks import hookimpl


@define
class WorkerKiller:
    """Kills the worker of a skill with SIGKILL when it dispatches its n-th op. It works on Linux.

    Attributes:
        at: the number of the dispatch.
        dispatches: the number of dispatches of skills so far.
        killed: the ids of the processes that it has killed.
        plugin: what to pass to ``sideband_host``: a guard that allows everything.

    Example:
        >>> killer = WorkerKiller(at=2)
        >>> killer.plugin.label if hasattr(killer.plugin, "label") else killer.plugin.name
        'worker-killer'
    """

    at: int = 1
    dispatches: int = field(default=0, init=False)
    killed: list[int] = field(factory=list, init=False)
    _known: set[int] = field(factory=set, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._known = _descendants(os.getpid())

    @property
    def plugin(self) -> Plugin:
        """The guard."""

        async def op_call(event: Any) -> None:
            if event.origin.skill:
                await self._count()

        guard = type("WorkerKillerGuard", (), {"op_call": staticmethod(hookimpl(op_call))})
        return Plugin("guard", "worker-killer", SimpleNamespace(sideband_guards=lambda: guard), "sideband-testing")

    async def _count(self) -> None:
        self.dispatches += 1
        if self.dispatches != self.at:
            return
        for pid in _descendants(os.getpid()) - self._known:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)
        await anyio.lowlevel.checkpoint()


def _descendants(pid: int) -> set[int]:
    """Return the ids of the processes below a process."""
    found: set[int] = set()
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, listing.read_text().split()):
                found |= {child} | _descendants(child)
    return found
