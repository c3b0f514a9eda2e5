"""The objects that entry points name. Unlike the rest of loading, this is fast to import."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any


def resolve(value: str) -> Any:
    """Import the object that the value of an entry point names: ``package.module:object [extra]``."""
    module, _, path = value.partition("[")[0].partition(":")
    return reduce(getattr, filter(None, path.strip().split(".")), import_module(module.strip()))


def describe(error: BaseException) -> str:
    """Return what code of a plugin raised, for messages."""
    if isinstance(error, SystemExit):
        return f"it tried to exit the program (SystemExit: {error.code!r})"
    return ": ".join(filter(None, (type(error).__name__, str(error))))
