"""Run synchronous code of plugins, such as their import, in a thread with a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from ..errors import SidebandError
from ._errors import PluginImportFailed, PluginInvalid
from ._objects import describe, resolve
from ._records import PluginRecord

T = TypeVar("T")


async def import_value(record: PluginRecord, *, seconds: float) -> Any:
    """Import the object that a plugin's entry point names, and store the duration in the record.

    Raises:
        PluginImportFailed: if the import raised, exited, or took longer than ``seconds``.
    """
    start = time.perf_counter()
    value = await guarded(record, partial(resolve, record.value), PluginImportFailed, seconds=seconds)
    record.load_ms = (time.perf_counter() - start) * 1000
    return value


async def guarded(
    record: PluginRecord,
    work: Callable[[], T],
    failure: type[PluginImportFailed | PluginInvalid],
    *,
    seconds: float,
) -> T:
    """Run code of a plugin in a thread and return its result.

    Subclasses of ``SidebandError`` propagate. All other exceptions, and a timeout, become ``failure``. After a timeout
    the thread is abandoned, since it cannot be interrupted.
    """
    with anyio.move_on_after(seconds):
        value, error = await run_sync(partial(_contained, work), abandon_on_cancel=True)
        if error is None:
            return value  # type: ignore[no-any-return]  # what `work` returned
        if isinstance(error, SidebandError):
            raise error
        raise failure(record, describe(error)) from error
    raise failure(record, f"it timed out after {seconds:g} s")


def _contained(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return the result of ``work`` or the exception it raised, of any type, so that it does not reach the caller."""
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001  threads are never cancelled, so the plugin raised it
        return None, error
