"""Which calls of a program may run at the same time: those of one group, in the order in which they arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from attrs import define, field


@define(eq=False)
class Admission:
    """Admits calls. Those of one group run at the same time, and none passes one that waits.

    Example:
        >>> async def run_alone(admission, work):
        ...     async with admission.entered(None):
        ...         await work()
    """

    _group: str | None = field(default=None, init=False)
    _running: int = field(default=0, init=False)
    _waiting: list[tuple[str | None, anyio.Event]] = field(factory=list, init=False)

    @asynccontextmanager
    async def entered(self, group: str | None) -> AsyncIterator[None]:
        """Enter a block as soon as no call of another group runs.

        Args:
            group: the group; ``None`` for a call that runs alone.
        """
        if self._waiting or not self._fits(group):
            entry = (group, anyio.Event())
            self._waiting.append(entry)
            try:
                await entry[1].wait()
            except BaseException:
                if entry[1].is_set():
                    self._leave()
                else:
                    self._waiting.remove(entry)
                raise
        else:
            self._enter(group)
        try:
            yield
        finally:
            self._leave()

    def _fits(self, group: str | None) -> bool:
        return not self._running or (group is not None and group == self._group)

    def _enter(self, group: str | None) -> None:
        self._group, self._running = group, self._running + 1

    def _leave(self) -> None:
        self._running -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            group, admitted = self._waiting.pop(0)
            self._enter(group)
            admitted.set()
