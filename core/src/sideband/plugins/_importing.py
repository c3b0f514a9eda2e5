"""Run synchronous code of plugins, such as their import, in a thread with a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync
from attrs import define

from ..errors import SidebandError
from ._errors import PluginImportFailed, PluginInvalid
from ._import_turns import first_turn
from ._objects import describe, module_of, object_of
from ._records import PluginRecord

T = TypeVar("T")


@define
class Import:
    """The import of the object that a plugin's entry point names. It is done for an object that was passed.

    Args:
        record: the plugin. The duration is stored in it.
        value: the object.
        is_done: whether it is imported.
    """

    record: PluginRecord
    value: Any = None
    is_done: bool = False

    async def and_check(self, check: Callable[[Any], T], *, seconds: float) -> T:
        """Import the object and check it, with code of the plugin, in one thread, and return the result of the check.

        Subclasses of ``SidebandError`` propagate. After a timeout the thread is abandoned, since it cannot be
        interrupted.

        Raises:
            PluginImportFailed: if the import raised, exited, or took longer than ``seconds``.
            PluginInvalid: if the check did.
        """
        with anyio.move_on_after(seconds):
            value, error = await run_sync(contained, partial(self._run_first, check), abandon_on_cancel=True)
            if error is None:
                return value  # type: ignore[no-any-return]  # what `check` returned
            raise self.failure(error)
        raise self._failure(f"it timed out after {seconds:g} s")

    def run(self, check: Callable[[Any], T]) -> T:
        """Import the object and check it, in this thread. Any exception of the plugin propagates."""
        if not self.is_done:
            start = time.perf_counter()
            self.value = object_of(self.record)
            self.record.load_ms = (time.perf_counter() - start) * 1000
            self.is_done = True
        return check(self.value)

    def _run_first(self, check: Callable[[Any], T]) -> T:
        with nullcontext() if self.is_done else first_turn(module_of(self.record.value).partition(".")[0]):
            return self.run(check)

    def failure(self, error: BaseException) -> SidebandError:
        """Return the typed error for what ``run`` raised, with that as its cause."""
        if isinstance(error, SidebandError):
            return error
        failure = self._failure(describe(error))
        failure.__cause__ = error
        return failure

    def _failure(self, problem: str) -> PluginImportFailed | PluginInvalid:
        return (PluginInvalid if self.is_done else PluginImportFailed)(self.record, problem)


def contained(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return the result of ``work`` or the exception it raised, of any type, so that it does not reach the caller."""
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001  threads are never cancelled, so the plugin raised it
        return None, error
