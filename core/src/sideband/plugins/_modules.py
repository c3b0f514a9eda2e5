"""Import the modules of a plugin a second time, beside those that are in use.

The modules of one import are a set. Only one set has the real names in ``sys.modules``. Another one that is in use has
names that no statement can spell, and so have its classes and functions: what is imported late, or looks up the
annotations of a class in its module, finds the module of its own set. See ``_late_imports`` for absolute imports.
"""

from __future__ import annotations

import importlib
import linecache
import sys
import threading
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, SourceFileLoader
from itertools import count
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from attrs import define, field

from ._import_turns import ModulesBusy, SecondTurn
from ._late_imports import end_redirection, redirect_imports

T = TypeVar("T")

_numbers = count(1)


class ExtensionFound(Exception):
    """A module is compiled code, of which a process can have only one copy."""


@define(eq=False)
class ModuleSet:
    """The modules of some packages, from one import of them.

    Attributes:
        packages: the names of the top-level packages or modules.
        modules: the modules by real name.
    """

    packages: tuple[str, ...]
    modules: dict[str, ModuleType]
    _suffix: str = field(factory=lambda: f"@{next(_numbers)}")
    _specs: dict[str, ModuleSpec | None] = field(factory=dict)

    @classmethod
    def current(cls, packages: Sequence[str]) -> ModuleSet:
        """Return the set that has the real names now. It may be empty."""
        return cls(tuple(packages), _imported(packages))

    def without(self, other: ModuleSet) -> ModuleSet:
        """Return the modules that another set does not have."""
        own = {name: one for name, one in self.modules.items() if other.modules.get(name) is not one}
        return ModuleSet(self.packages, own)

    @property
    def extension(self) -> str | None:
        """The name of a module that is compiled code, or ``None``."""
        for name, module in self.modules.items():
            spec = getattr(module, "__spec__", None)
            if isinstance(getattr(spec, "loader", None), ExtensionFileLoader):
                return name
        return None

    @property
    def shared(self) -> str | None:
        """The name of a package that several distributions share, a namespace package, or ``None``."""
        found = (self.modules.get(name) for name in self.packages)
        return next((one.__name__ for one in found if one is not None and getattr(one, "__file__", None) is None), None)

    def set_aside(self, *, all_of_them: bool = False) -> None:
        """Take the real names from the modules, and give them others.

        Threads may import a neighbor meanwhile, so each name is valid until no module uses it.

        Args:
            all_of_them: whether each module with a real name belongs to the set, also one imported a moment ago.
        """
        redirect_imports(self._suffix)
        self._rename(self.modules, self._alias)
        if all_of_them:
            later = ModuleSet.current(self.packages).modules
            self._rename({name: one for name, one in later.items() if name not in self.modules}, self._alias)
            self.modules.update(later)
        for name, module in self.modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    def put_back(self) -> None:
        """Give the modules, and those that they have imported since, their real names, which no others may have."""
        for package in self.packages:
            alias = self._alias(package)
            for name, module in _imported([alias]).items():
                self.modules.setdefault(package + name.removeprefix(alias), module)
        self._rename(self.modules, str)
        others = [name for name in _imported(self.packages) if name not in self.modules]
        for name in [*others, *_imported([self._alias(package) for package in self.packages])]:
            sys.modules.pop(name, None)
        end_redirection(self._suffix)

    def forget(self) -> None:
        """Remove all names of the modules, which the host does not use anymore.

        If something else does, such as a program that has imported them itself, its late imports find the newest ones.
        """
        self._rename(self.modules, str, is_named=False)
        end_redirection(self._suffix)
        own = {id(module) for module in self.modules.values()}
        aliases = _imported([self._alias(package) for package in self.packages])
        for name in [*aliases, *(name for name, one in list(sys.modules.items()) if id(one) in own)]:
            sys.modules.pop(name, None)
        self.modules.clear()
        self._specs.clear()
        _forget_caches(self.packages)

    def _alias(self, name: str) -> str:
        package, dot, rest = name.partition(".")
        return f"{package}{self._suffix}{dot}{rest}"

    def _rename(
        self, modules: Mapping[str, ModuleType], renamed: Callable[[str], str], *, is_named: bool = True
    ) -> None:
        """Let modules, and what they define, have other names, under which they can be found if ``is_named``."""
        for real, module in modules.items() if is_named else ():
            sys.modules[renamed(real)] = module
        for real, module in modules.items():
            old, new = getattr(module, "__name__", ""), renamed(real)
            if old not in (real, self._alias(real)):
                continue  # it has another name too, maybe of another distribution
            names: dict[str, Any] = {"__name__": new}
            original = self._specs.setdefault(real, getattr(module, "__spec__", None))
            if original is not None:
                spec = copy(original)
                spec.name = new
                spec = original if spec.name == real else spec
                names |= {"__spec__": spec, "__package__": spec.parent}
            # All at once: an import between would find that they differ.
            vars(module).update(names)
            _rename_all(vars(module), old, new)


@define(eq=False)
class SecondImport:
    """An import of packages beside those that are in use.

    Only ``run`` belongs in a thread. Names change in the event loop, where no import of a running call is half done.

    Args:
        packages: the names of the top-level packages or modules.

    Attributes:
        running: the modules that are in use. They keep the real names, except from ``begin`` to ``finish``.
        imported: the modules that were imported, once it is finished.

    Raises:
        ModulesBusy: if an earlier import of one of the packages was abandoned and has not ended.
    """

    packages: tuple[str, ...]
    running: ModuleSet = field(init=False)
    imported: ModuleSet | None = field(default=None, init=False)
    _turn: SecondTurn = field(init=False)
    _finder: _FreshFinder | None = field(default=None, init=False)
    _left: ModuleSet | None = field(default=None, init=False)
    _is_running: bool = field(default=False, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._turn = SecondTurn(self.packages)
        self.running = ModuleSet.current(self.packages)

    def begin(self) -> None:
        """Set aside the modules in use. The bytecode caches of the packages are not used: they may be of older source.

        Raises:
            ModulesBusy: if a part of them is being imported for the first time.
        """
        self._turn.begin()
        importlib.invalidate_caches()
        self.running.set_aside(all_of_them=True)
        self._finder = _FreshFinder(frozenset(self.packages))
        sys.meta_path.insert(0, self._finder)

    def run(self, work: Callable[[], T]) -> T:
        """Call a function that imports the packages and checks them, in a thread."""
        with self._lock:
            if self._left is not None:
                raise ModulesBusy
            self._is_running = True
        try:
            result = work()
            self._import_others()
            return result
        finally:
            with self._lock:
                self._is_running = False
                if self._left is not None:
                    self._end()

    def finish(self) -> None:
        """Give the names back to the modules in use, and keep what was imported."""
        self.imported = self._give_names_back()
        self._end()

    def abandon(self) -> None:
        """Give the names back to the modules in use, and forget what was imported, now or once its thread has ended.

        The thread goes on with other names, so that it changes nothing.
        """
        with self._lock:
            if self.imported is not None:
                self.imported.forget()
            elif self._finder is None:
                self._turn.end()
            else:
                self._finder.packages = frozenset()
                self._left = self._give_names_back()
                if self._is_running:
                    self._turn.let_others_import()
                else:
                    self._end()

    def _import_others(self) -> None:
        """Import the modules that the running ones have imported late, before their files change again."""
        for name in list(self.running.modules):
            if name not in sys.modules:
                with suppress(Exception):  # it may not exist anymore, or be optional
                    importlib.import_module(name)

    def _give_names_back(self) -> ModuleSet:
        """Let the modules in use have the real names again, and return those that have been imported."""
        found = ModuleSet.current(self.packages).without(self.running)
        found.set_aside()
        self.running.put_back()
        return found

    def _end(self) -> None:
        sys.meta_path.remove(self._finder)  # type: ignore[arg-type]  # `begin` has added it
        if self._left is not None:
            sys.modules.update(self.running.modules)  # an import that fails removes the name that it began with
            self._left.forget()
        self._turn.end()


class _FreshFinder:
    """Finds the modules of some packages like the other finders, and loads them from source."""

    def __init__(self, packages: frozenset[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if _package(name) not in self.packages:
            return None
        for finder in sys.meta_path:
            if finder is self or (find := getattr(finder, "find_spec", None)) is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is None:
                continue
            if isinstance(spec.loader, ExtensionFileLoader) or str(spec.origin).endswith(tuple(EXTENSION_SUFFIXES)):
                raise ExtensionFound(name)
            if type(spec.loader) is SourceFileLoader:
                spec.loader = _FreshLoader(spec.loader.name, spec.loader.path)
            return spec
        return None


class _FreshLoader(SourceFileLoader):
    """Compiles the source without looking for its bytecode, which is found by a time in whole seconds and a size."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _package(name: str) -> str:
    return name.partition(".")[0]


def _imported(packages: Sequence[str]) -> dict[str, ModuleType]:
    """Return the modules of packages. A process may have thousands of others, which one comparison excludes."""
    starts, modules = tuple(packages), sys.modules.copy()
    return {name: one for name, one in modules.items() if name.startswith(starts) and _package(name) in packages}


def _rename_all(namespace: Mapping[str, Any], old: str, new: str) -> None:
    """Let the classes and functions of a module belong to it under another name."""
    for one in list(namespace.values()):
        if isinstance(one, FunctionType) and one.__module__ == old:
            one.__module__ = new
        elif isinstance(one, type) and vars(one).get("__module__") == old:
            type.__setattr__(one, "__module__", new)
            _rename_all(vars(one), old, new)


def _forget_caches(packages: Iterable[str]) -> None:
    """Remove what the standard library and attrs keep of classes: subscripted types, and generated source."""
    for clear in getattr(typing, "_cleanups", ()):
        clear()
    marks = tuple(f" {package}." for package in packages)
    for name in [name for name in list(linecache.cache) if name.startswith("<attrs generated")]:
        if any(mark in name for mark in marks):
            linecache.cache.pop(name, None)
    linecache.checkcache()
