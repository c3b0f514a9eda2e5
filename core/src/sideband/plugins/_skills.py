"""Find the folders of skills that are installed as packages, without importing them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ..loading import SkillPackage
from ._errors import PluginDrifted
from ._objects import verify_locked
from ._records import PluginRecord, State


def locate_skill(record: PluginRecord) -> SkillPackage | None:
    """Return the folder of a skill's package, or ``None`` if it does not exist; the record then states the reason."""
    try:
        verify_locked(record)
        folder = _folder(record.value)
    except PluginDrifted as error:
        record.move(State.FAILED, error.reason, decided_by="lock")
        return None
    except LookupError as error:
        record.move(State.FAILED, str(error.args[0]))
        return None
    if record.state is State.FOUND:
        record.move(State.VALIDATED, f"it is in {folder}")
    return SkillPackage(name=record.name, path=folder, distribution=record.distribution, version=record.version)


def _folder(package: str) -> Path:
    """Return the folder of a top-level package. Searching for a name without a dot imports nothing.

    Raises:
        LookupError: if the package does not exist or is not a single folder.
    """
    if not package.isidentifier():
        raise LookupError(f"its value must be a top-level package, got {package!r}")
    try:
        spec = find_spec(package)
    except (ImportError, ValueError, AttributeError) as error:
        raise LookupError(f"its package `{package}` cannot be located: {error}") from error
    if spec is None:
        raise LookupError(f"its package `{package}` does not exist")
    folders = [Path(folder) for folder in spec.submodule_search_locations or () if Path(folder).is_dir()]
    if len(folders) != 1:
        raise LookupError(f"its package `{package}` is {'several folders' if folders else 'not a folder'}")
    return folders[0]
