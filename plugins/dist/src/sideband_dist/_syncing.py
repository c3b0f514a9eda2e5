"""Install a distribution into an environment, which is replaced as a whole."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path
from secrets import token_hex

from attrs import frozen
from packaging.specifiers import SpecifierSet
from sideband.plugins import LOCK_FILE

from ._checking import environment_differences
from ._errors import DistChanged, DistError, DistInvalid
from ._exporting import lock_requirements
from ._files import DistManifest, lock_text, write_text
from ._locking import LockOptions, build_local, lock_for
from ._model import DistLock
from ._uv import PackageSources, create_environment, install

_EXCHANGE = 2  # RENAME_EXCHANGE
_HERE = -100  # AT_FDCWD


@frozen
class SyncOptions:
    """How to install.

    Args:
        python: the Python for a new environment; by default the one that runs this.
        wheels: more folders of wheels.
        cached: whether to download nothing that is not in the cache of uv.
        isolated: whether local packages are built in an environment of their own.
    """

    python: str | None = None
    wheels: tuple[Path, ...] = ()
    cached: bool = False
    isolated: bool = True


def sync(lock: DistLock, environment: Path, manifest: DistManifest | None, folder: Path, options: SyncOptions) -> None:
    """Install exactly what is in a lock, and the lock. A complete new environment takes the place of the old one.

    Until then, the old one is unchanged; also if this process is killed.

    Args:
        lock: the lock.
        environment: the folder, which is created, or is a virtual environment.
        manifest: the ``sideband.toml``, if it is there, for the source of local packages.
        folder: the folder that relative places in the lock start at.
        options: how to install.

    Raises:
        DistInvalid: if the folder is something else, or the lock is for another Python.
        InstallFailed: if a package cannot be installed.
        DistChanged: if what was installed is not what is in the lock.
    """
    environment = environment.absolute()
    if environment.exists() and not (environment / "pyvenv.cfg").is_file():
        raise DistInvalid(environment, "it exists and is not a virtual environment", hint="name another folder")
    version = ".".join(map(str, sys.version_info[:3]))
    if options.python is None and lock.dist.python and not SpecifierSet(lock.dist.python).contains(version):
        raise DistInvalid("sideband.lock", f"it is for Python {lock.dist.python}", hint="name one with --python")
    environment.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{environment.name}.new-"
    for left in environment.parent.glob(f"{prefix}*"):  # by a sync that was killed
        shutil.rmtree(left, ignore_errors=True)
    new = environment.with_name(prefix + token_hex(8))
    new.mkdir(mode=0o755)
    try:
        _install(lock, new, manifest, folder, options)
        _replace(environment, new)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _install(lock: DistLock, new: Path, manifest: DistManifest | None, folder: Path, options: SyncOptions) -> None:
    work = new / ".sideband-sync"
    more = [*options.wheels]
    if manifest is not None:
        work.mkdir()
        local = build_local(manifest, work / "wheels", LockOptions(cached=options.cached, isolated=options.isolated))
        for name, wheel in local.items():
            _check_wheel(lock, name, wheel)
        more += sorted({wheel.parent for wheel in local.values()})
    sources = PackageSources.of(lock.dist, folder, more=more, cached=options.cached)
    created = new / "environment"
    create_environment(created, sources, options.python)
    work.mkdir(exist_ok=True)
    install(created, lock_requirements(lock.packages), sources, work)
    shutil.rmtree(work)
    for path in created.iterdir():
        path.rename(new / path.name)
    created.rmdir()
    complete = lock_for(lock, new)
    if found := list(environment_differences(complete, new, placed=False)):
        raise DistChanged("what was installed", found)
    write_text(new / LOCK_FILE, lock_text(complete))


def _check_wheel(lock: DistLock, name: str, wheel: Path) -> None:
    """Report that the source of a local package is no longer that of the lock, before uv reports another hash."""
    import hashlib  # noqa: PLC0415  only for local packages

    locked = [digest for one in lock.packages if one.name == name for digest, _ in one.wheel_hashes()]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest not in locked:
        problem = f"the SHA-256 of {wheel.name} is {digest}, and the lock has {', '.join(locked) or 'no wheel of it'}"
        raise DistInvalid(name, problem, hint="its source has changed: lock it again with `sideband dist lock`")


def _replace(environment: Path, new: Path) -> None:
    """Let a new environment take the place of the old one, which is then in the place of the new one."""
    if not environment.exists():
        new.rename(environment)
        return
    try:
        _exchange(environment, new)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            hint = "check the permissions of its folder"
            raise DistError(f"cannot replace {environment}: {error.strerror}", hint=hint) from error
        # Without the system call there is a moment without an environment.
        old = new.with_name(f"{new.name}-old")
        environment.rename(old)
        new.rename(environment)
        old.rename(new)


def _exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders in one step."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
