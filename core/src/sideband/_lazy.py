"""Packages that import a name when it is first used, so that a fast start pays for nothing else."""

from __future__ import annotations

import sys
from importlib import import_module

# As type checkers know it. `typing` itself takes longer to import than `sideband --version` takes otherwise.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy(package: str, *modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and the ``__dir__`` of a package that has an ``__all__``.

    Args:
        package: its name.
        modules: where its names come from, relative to it. They are tried in this order, so the quick ones come first.
    """
    namespace = vars(sys.modules[package])
    names: list[str] = namespace["__all__"]

    def get(name: str) -> Any:
        for module in modules if name in names else ():
            found = import_module(module, package)
            if hasattr(found, name):
                return namespace.setdefault(name, getattr(found, name))
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: names
