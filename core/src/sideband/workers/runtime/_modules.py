"""Load skill modules from their paths once, and look up their functions."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

from ._errors import SkillRefusal

Function = Callable[..., Coroutine[Any, Any, Any]]


class Modules:
    """The modules of this worker. If a module fails to load, the next call tries again.

    Args:
        packages: the folder with the dependencies of the skill. The import path has the standard library first, then
            the skill's own modules (in its folder, then beside a module with tools), then the dependencies.
    """

    def __init__(self, packages: str = "") -> None:
        self._packages = packages
        self._modules: dict[str, ModuleType] = {}
        self._functions: dict[tuple[str, str], Function] = {}

    def function(self, path: str, name: str, folder: str) -> Function:
        """Return the ``async def`` with that name.

        Args:
            path: the path of the module.
            name: the name of the function.
            folder: the skill's folder, which is added to the import path.

        Raises:
            SkillRefusal: if the function does not exist or is not ``async def``.
            Exception: if the import of the module raises.
        """
        found = self._functions.get((path, name))
        if found is None:
            found = self._functions[path, name] = _checked(self._module(path, folder), name)
        return found

    def _module(self, path: str, folder: str) -> ModuleType:
        module = self._modules.get(path)
        if module is None:
            self._add_to_path(folder)
            self._add_to_path(path.rpartition("/")[0])
            module = self._modules[path] = _load(path, self._name(path, folder))
        return module

    def _add_to_path(self, folder: str) -> None:
        """Add a folder of the skill to the import path, before the dependencies."""
        if self._packages and self._packages not in sys.path:
            sys.path.append(self._packages)
        if folder and folder not in sys.path:
            sys.path.insert(sys.path.index(self._packages) if self._packages else len(sys.path), folder)

    def _name(self, path: str, folder: str) -> str:
        """Return the name by which the skill's other modules import it, or a generated one if that is not available."""
        relative = os.path.relpath(path, folder or path.rpartition("/")[0])
        name = relative.removesuffix(".py").replace(os.sep, ".")
        usable = all(part.isidentifier() for part in name.split("."))
        if usable and name.partition(".")[0] not in sys.stdlib_module_names and name not in sys.modules:
            return name
        return f"_skill_{len(self._modules)}"


def _load(path: str, name: str) -> ModuleType:
    if not os.access(path, os.R_OK):
        raise SkillRefusal(f"module {path} does not exist or is not readable")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SkillRefusal(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _checked(module: ModuleType, name: str) -> Function:
    found: Any = vars(module).get(name)
    where = module.__file__
    if found is None:
        close = difflib.get_close_matches(name, [key for key in vars(module) if not key.startswith("_")], n=1)
        raise SkillRefusal(f"{where} has no function `{name}`" + (f" (did you mean `{close[0]}`?)" if close else ""))
    if not inspect.iscoroutinefunction(found):
        raise SkillRefusal(f"`{name}` in {where} must be `async def`")
    return found  # type: ignore[no-any-return]
