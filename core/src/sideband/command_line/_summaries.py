"""The summaries of commands for ``sideband --help``, read from their source, since help imports no plugin."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from ..plugins._objects import module_of
from ..plugins._records import PluginRecord

_MAX_BYTES = 1 << 20


def summary_of(record: PluginRecord) -> str:
    """Return the summary that the module of a command passes to ``Command``, else the package of the command."""
    for path in _sources(record):
        try:
            if path.stat().st_size <= _MAX_BYTES:
                for node in ast.walk(ast.parse(path.read_bytes())):
                    if isinstance(node, ast.Call) and (summary := _summary(node, record.name)) is not None:
                        return summary
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return f"(from {record.package})"


def _sources(record: PluginRecord) -> Iterator[Path]:
    """Yield the files that may be the module. Searching for a top-level package imports nothing."""
    if record.file:
        yield Path(record.file)
        return
    package, _, rest = module_of(record.value).partition(".")
    try:
        spec = find_spec(package) if package.isidentifier() else None
    except (ImportError, ValueError, AttributeError):
        return
    if spec is None:
        return
    if not rest:
        yield Path(spec.origin or "")
    for folder in spec.submodule_search_locations or () if rest else ():
        path = Path(folder, *rest.split("."))
        yield from (path.with_name(f"{path.name}.py"), path / "__init__.py")


def _summary(call: ast.Call, name: str) -> str | None:
    """Return the summary of a command if this is the call that makes it."""
    if getattr(call.func, "attr", getattr(call.func, "id", "")) != "Command":
        return None
    given = dict(zip(("name", "summary"), call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords if one.arg}
    values = [one.value for one in map(given.get, ("name", "summary")) if isinstance(one, ast.Constant)]
    return values[1] if len(values) == 2 and values[0] == name and isinstance(values[1], str) else None
