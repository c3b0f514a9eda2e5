"""Absolute imports that modules with other names run late, in functions: each gets a module of its own set.

A relative import begins at the name of its module, but ``import package.part`` would find the set that has the real
names now, maybe one that is half loaded.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Mapping, Sequence
from sys import modules
from typing import Any

_lock = threading.Lock()
_suffixes: set[str] = set()
_original: Callable[..., Any] = builtins.__import__


def redirect_imports(suffix: str) -> None:
    """Redirect imports of modules whose top-level package has a suffix, such as ``@1``, to packages with it."""
    global _original
    with _lock:
        _suffixes.add(suffix)
        if builtins.__import__ is not _import:
            _original, builtins.__import__ = builtins.__import__, _import


def end_redirection(suffix: str) -> None:
    """Let imports be as they were, unless there is another suffix."""
    with _lock:
        _suffixes.discard(suffix)
        if not _suffixes and builtins.__import__ is _import:
            builtins.__import__ = _original


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002  the names of its parameters are those of `__import__`
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    if not level and globals is not None:
        _, mark, suffix = str(globals.get("__name__")).partition(".")[0].partition("@")
        package, dot, rest = name.partition(".")
        if mark and (alias := f"{package}@{suffix}") in modules:
            name = alias + dot + rest
    return _original(name, globals, locals, fromlist, level)
