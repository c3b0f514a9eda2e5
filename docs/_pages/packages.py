"""The packages of the workspace and their modules."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

__all__ = ["modules", "packages", "plugin_points"]

_ROOT = Path(__file__).parents[2]
_LAYERS = ("core", "agent", "libs/*", "plugins/*", "contrib/*")
_SKILLS = ("sideband_demo",)  # runs in workers only


@cache
def packages() -> dict[str, Path]:
    """Return the folders of the import packages by name, without those that only workers run."""
    sources = (source for layer in _LAYERS for source in sorted(_ROOT.glob(f"{layer}/src")))
    folders = (folder for source in sources for folder in sorted(source.iterdir()))
    return {one.name: one for one in folders if (one / "__init__.py").is_file() and one.name not in _SKILLS}


def plugin_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group in packages of the workspace. Other packages may be installed beside them."""
    own = {*packages(), *_SKILLS}
    return [point for point in entry_points(group=group) if point.module.partition(".")[0] in own]


def modules(package: str) -> Iterator[ModuleType]:
    """Import all modules of a package, private ones too, and yield them."""
    yield import_module(package)
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        if not module.name.endswith(".__main__"):
            yield import_module(module.name)
