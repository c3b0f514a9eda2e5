"""Decide by metadata which plugins the lock of an environment contains. Imports no plugin and reads no file of one."""

from __future__ import annotations

import os
import re
import sys

from ._lock import Lock, LockedPlugin
from ._records import PluginRecord, State

_BY = "lock"


def decide_locked(record: PluginRecord, lock: Lock) -> None:
    """Deny an installed plugin that is not in the lock, fail one that differs from it, mark all others as locked."""
    package = normalized(record.distribution)
    locked = lock.plugin(record.kind, record.name)
    if locked is None or locked.package != package:
        names = [record.label, record.name, record.distribution]
        reason = lock.denial(names) if locked is None else f"the lock gives this name to {locked.package}"
        record.move(State.DENIED, reason, decided_by=_BY)
    elif problem := _difference(record, locked, lock):
        record.move(State.FAILED, problem, decided_by=_BY)
    else:
        record.locked = True


def missing_packages(lock: Lock) -> list[str]:
    """Return a problem for each package of the lock that is not installed in its version."""
    from ._locked_files import environment_folders, missing, root_of

    folders = environment_folders()
    packages = [lock.package(name) for name in lock.packages]
    return [missing(one, folders) for one in packages if one.metadata and not root_of(one, folders)]


def normalized(name: str) -> str:
    """Return the normalized name of a package.

    Example:
        >>> normalized("Sideband_HTTP")
        'sideband-http'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _difference(record: PluginRecord, locked: LockedPlugin, lock: Lock) -> str:
    """Return how the metadata of a plugin differs from the lock, or an empty string."""
    version = lock.package(locked.package).version
    if record.version != version:
        return f"{record.distribution} {record.version} is installed, but the lock has {version}"
    if record.editable:
        return f"{record.distribution} is an editable installation, whose files can change at any time"
    if (record.value, record.api) != (locked.value, locked.api):
        return f"its entry point is `{record.value}`, but the lock has `{locked.value}`"
    prefix = os.path.join(os.path.realpath(sys.prefix), "")  # noqa: PTH118  pathlib is slow to import
    if not os.path.join(os.path.realpath(record.location), "").startswith(prefix):  # noqa: PTH118  as above
        return f"{record.distribution} is in {record.location}, outside the locked environment {sys.prefix}"
    return ""
