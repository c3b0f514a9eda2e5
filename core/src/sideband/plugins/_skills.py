"""Finds the folders of skills that are installed as packages. Nothing of them is imported."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..loading import SkillPackage
from ._records import PluginRecord, State

__all__ = ["locate_skill"]


def locate_skill(record: PluginRecord) -> SkillPackage | None:
    """The folder of a skill's package; ``None`` if there is none, and then the record says why."""
    problem = ""
    folders: list[str] = []
    if record.value.isidentifier():
        folders, problem = _folders(record.value)
    else:
        problem = f"it names {record.value!r}, and a skill is a top-level package"
    if problem:
        record.move(State.FAILED, problem)
        return None
    if record.state is State.FOUND:
        record.move(State.VALIDATED, f"it is in {folders[0]}")
    return SkillPackage(
        name=record.name, path=Path(folders[0]), distribution=record.distribution, version=record.version
    )


def _folders(package: str) -> tuple[list[str], str]:
    """Where a top-level package is, and what is wrong with that; looking for one that has no dot imports nothing."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError, AttributeError) as error:
        return [], f"its package `{package}` can't be located: {error}"
    if spec is None:
        return [], f"its package `{package}` is not there"
    folders = [folder for folder in spec.submodule_search_locations or () if Path(folder).is_dir()]
    if len(folders) != 1:
        return [], f"its package `{package}` is {'several folders' if folders else 'not a folder'}"
    return folders, ""
