"""Import the names of a package on first use, to keep start-up fast."""

from __future__ import annotations

import sys
from importlib import import_module

# Type checkers treat this name as `typing.TYPE_CHECKING`. Importing `typing` takes longer than the rest of
# `sideband --version`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def lazy(package: str, *modules: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module-level ``__getattr__`` and ``__dir__`` for a package that defines ``__all__``.

    Args:
        package: the name of the package.
        modules: the relative names of the modules that define the package's names. They are searched in this order, so
            list those that are fast to import first.
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
