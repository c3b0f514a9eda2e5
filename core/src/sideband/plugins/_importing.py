"""Runs a plugin's synchronous code, its import above all, where it can't stop the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial, reduce
from importlib import import_module
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from ..errors import SidebandError
from ._errors import PluginImportFailed, PluginInvalid
from ._records import PluginRecord

T = TypeVar("T")


async def import_value(record: PluginRecord, *, seconds: float) -> Any:
    """Import what a plugin's entry point names. The record gets to know how long that took.

    Raises:
        PluginImportFailed: it raised, exited, or took longer than ``seconds``.
    """
    start = time.perf_counter()
    value = await guarded(record, partial(_resolve, record.value), PluginImportFailed, seconds=seconds)
    record.load_ms = (time.perf_counter() - start) * 1000
    return value


async def guarded(
    record: PluginRecord,
    work: Callable[[], T],
    failure: type[PluginImportFailed | PluginInvalid],
    *,
    seconds: float,
) -> T:
    """Run ``work``, which runs code of the plugin, in a thread.

    Our own errors pass. Whatever else it raises becomes ``failure``; so does taking longer than ``seconds``. The
    thread is then left behind, since nothing can interrupt it.
    """
    with anyio.move_on_after(seconds):
        value, error = await run_sync(partial(_contained, work), abandon_on_cancel=True)
        if error is None:
            return value  # type: ignore[no-any-return]  # what `work` returned
        if isinstance(error, SidebandError):
            raise error
        raise failure(record, _in_words(error)) from error
    raise failure(record, f"it did not end within {seconds:g} s")


def _contained(work: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """What ``work`` returned, and what it raised. That may be anything: it must not get to the thread's owner."""
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001  a thread is never cancelled, so what is raised here is the plugin's
        return None, error


def _resolve(value: str) -> Any:
    module, _, path = value.partition("[")[0].partition(":")
    return reduce(getattr, filter(None, path.strip().split(".")), import_module(module.strip()))


def _in_words(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"it tried to end the program (SystemExit: {error.code!r})"
    return f"{type(error).__name__}: {error}"
