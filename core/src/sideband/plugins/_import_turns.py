"""Imports of one package take turns in a process: while a package is imported again, its names are of two versions."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_turns = threading.Condition()
_first: list[str] = []
_second: set[str] = set()
_divided: set[str] = set()


class ModulesBusy(Exception):
    """Another import of the same packages has not ended."""


@contextmanager
def first_turn(package: str) -> Iterator[None]:
    """Import a package, or a part of it, in this thread: not while it is imported again."""
    with _turns:
        _turns.wait_for(lambda: package not in _divided)
        _first.append(package)
    try:
        yield
    finally:
        with _turns:
            _first.remove(package)


class SecondTurn:
    """The turn of an import of packages that are in use.

    Args:
        packages: the names of the top-level packages or modules.

    Raises:
        ModulesBusy: if an earlier such import was abandoned and has not ended.
    """

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages
        with _turns:
            if not _second.isdisjoint(packages):
                raise ModulesBusy
            _second.update(packages)

    def begin(self) -> None:
        """Let no first import begin.

        Raises:
            ModulesBusy: if one has begun and has not ended.
        """
        with _turns:
            if not set(_first).isdisjoint(self.packages):
                raise ModulesBusy
            _divided.update(self.packages)

    def let_others_import(self) -> None:
        """Let first imports begin again. The modules in use have their names again."""
        with _turns:
            _divided.difference_update(self.packages)
            _turns.notify_all()

    def end(self) -> None:
        """Let others import the packages again."""
        self.let_others_import()
        with _turns:
            _second.difference_update(self.packages)
