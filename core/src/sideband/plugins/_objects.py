"""The objects that entry points name. Unlike the rest of loading, this is fast to import."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any

from ..errors import safe_text
from ._records import PluginRecord


def object_of(record: PluginRecord) -> Any:
    """Import the object that a plugin consists of.

    Raises:
        PluginFileInvalid: if it is a local file that has changed since it was found to be trusted.
        PluginDrifted: if it is locked, and differs from the lock.
    """
    verify_locked(record)
    if not record.file:
        return resolve(record.value)
    from ._local_files import importable

    with importable(record):
        return resolve(record.value)


def verify_locked(record: PluginRecord) -> None:
    """Compare the files of a plugin with the lock of the environment, if that contains it.

    Raises:
        PluginDrifted: if it differs.
    """
    if record.locked:
        from ._locked_files import verify

        verify(record)


def resolve(value: str) -> Any:
    """Import the object that the value of an entry point names: ``package.module:object [extra]``."""
    path = value.partition("[")[0].partition(":")[2]
    return reduce(getattr, filter(None, path.strip().split(".")), import_module(module_of(value)))


def module_of(value: str) -> str:
    """Return the module of an entry point's value."""
    return value.partition("[")[0].partition(":")[0].strip()


def unwrapped(error: BaseException) -> BaseException:
    """Return the only exception of a group of one: that of the task that failed."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def describe(error: BaseException) -> str:
    """Return what code of a plugin raised, for messages."""
    error = unwrapped(error)
    if isinstance(error, SystemExit):
        return f"it tried to exit the program (SystemExit: {error.code!r})"
    return ": ".join(filter(None, (type(error).__name__, safe_text(error))))
