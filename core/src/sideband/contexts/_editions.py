"""The editions of a host's plugins. A reload begins a new one, and calls that run finish with the one they began with.

The number of users is changed in place, without calling a method, where every effect and every hook passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from attrs import define, field


@define(eq=False)
class Edition:
    """The plugins of a host between two reloads.

    Attributes:
        users: the number of calls, effects, hooks and runs that use its plugins now. Entering it adds 1.
        unused: set when the last user leaves it; ``None`` before a reload has replaced it.
        ops: the ops that were looked up in it, by name.
        before: the edition before it, while that has users.
    """

    users: int = 0
    unused: anyio.Event | None = field(default=None, repr=False)
    ops: dict[str, Any] = field(factory=dict, repr=False)
    before: Edition | None = field(default=None, repr=False)

    def leave(self) -> None:
        """End one use of it."""
        self.users -= 1
        if self.unused is not None and not self.users:
            self.unused.set()

    async def wait(self) -> None:
        """Wait until neither it nor an earlier edition has users, and release its ops. It must have been replaced.

        A user of an earlier edition may use objects of this one too: a run finds its tools again in each turn.
        """
        assert self.unused is not None  # noqa: S101  the caller replaced it
        if self.before is not None:
            await self.before.wait()
            self.before = None
        await self.unused.wait()
        self.ops.clear()


class Editions:
    """The editions of one host, of which one is current."""

    __slots__ = ("current",)

    def __init__(self) -> None:
        self.current = Edition()

    def enter(self, entered: Edition | None) -> Edition:
        """Enter the edition that a call has entered, or the current one if it has not, or has left it."""
        edition = self.current if entered is None else entered
        edition.users += 1
        return edition

    @contextmanager
    def held(self) -> Iterator[None]:
        """Use the current edition for a block."""
        edition = self.current
        edition.users += 1
        try:
            yield
        finally:
            edition.leave()

    def renew(self) -> Edition:
        """Begin another edition without ops, and return the one that it replaces."""
        replaced = self.current
        replaced.unused = anyio.Event()
        if not replaced.users:
            replaced.unused.set()
        self.current = Edition(before=replaced)
        return replaced
