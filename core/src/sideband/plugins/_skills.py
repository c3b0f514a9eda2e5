"""Finds the folders of skills that are installed as packages. Nothing of them is imported."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..loading import SkillPackage
from ._records import PluginRecord, State


def locate_skill(record: PluginRecord) -> SkillPackage | None:
    """The folder of a skill's package; ``None`` if there is none, and then the record says why."""
    try:
        folder = _folder(record.value)
    except LookupError as error:
        record.move(State.FAILED, str(error.args[0]))
        return None
    if record.state is State.FOUND:
        record.move(State.VALIDATED, f"it is in {folder}")
    return SkillPackage(name=record.name, path=folder, distribution=record.distribution, version=record.version)


def _folder(package: str) -> Path:
    """Where a top-level package is. Looking for one that has no dot imports nothing.

    Raises:
        LookupError: why it is in no folder of its own.
    """
    if not package.isidentifier():
        raise LookupError(f"it names {package!r}, and a skill is a top-level package")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError, AttributeError) as error:
        raise LookupError(f"its package `{package}` can't be located: {error}") from error
    if spec is None:
        raise LookupError(f"its package `{package}` is not there")
    folders = [Path(folder) for folder in spec.submodule_search_locations or () if Path(folder).is_dir()]
    if len(folders) != 1:
        raise LookupError(f"its package `{package}` is {'several folders' if folders else 'not a folder'}")
    return folders[0]
