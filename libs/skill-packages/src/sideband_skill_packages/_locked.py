"""Packages that are locked: resolved to exact versions with hashes first, and installed from exactly these later."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from secrets import token_hex

import anyio
from anyio import to_thread
from sideband.state import TemporaryFolder, remove_temporary_folders

from ._errors import EnvironmentFailed
from ._hardening import harden
from ._program import find_uv, uv_environment
from ._uv import PackageSource, arguments_of, run_installer

_LOCK = "requirements.txt"


async def resolve(parent: Path, requirements: Iterable[str], owner: str, source: PackageSource | None = None) -> str:
    """Return the exact versions of packages and of all that they need, with the hashes of their wheels.

    Nothing is installed.

    Args:
        parent: a folder of the host in which a temporary one may be made.
        requirements: names and versions of packages, without URLs or paths.
        owner: what the packages are for, for messages.
        source: where the packages come from; by default the index that uv is configured with.

    Returns:
        The text of a file of requirements, for this interpreter and platform.

    Raises:
        InstallerMissing: if uv was not found.
        EnvironmentFailed: if there is no solution, or the index cannot be reached.
    """
    source = source or PackageSource()
    found: list[str] = []

    async def fill(folder: Path) -> None:
        given, out = folder / "requirements.in", folder / _LOCK
        given.write_text("\n".join(requirements) + "\n", encoding="utf-8")
        words = ["pip", "compile", "--generate-hashes", "--only-binary", ":all:", "--no-header", "--no-annotate"]
        words += ["--output-file", str(out), str(given), *arguments_of(source, folder / f".{token_hex(16)}")]
        limits = await to_thread.run_sync(source.limits)
        await run_installer([str(find_uv()), *words], owner, source, limits, environment=uv_environment())
        found.append(out.read_text(encoding="utf-8"))

    await filled(parent, None, owner, fill)
    return found[0]


async def install_locked(target: Path, lock: str, owner: str, source: PackageSource | None = None) -> None:
    """Install exactly what a lock says, from wheels only, all or nothing. An existing folder is not changed.

    Args:
        target: the folder. Its name must be that of the lock, such as a digest.
        lock: the lock, as ``resolve`` returned it.
        owner: what the packages are for, for messages.
        source: where the packages come from; by default the index that uv is configured with.

    Raises:
        InstallerMissing: if uv was not found.
        EnvironmentFailed: if it failed; everything that was installed has been removed.
    """
    source = source or PackageSource()

    async def fill(folder: Path) -> None:
        file, cache = folder / f".{token_hex(16)}", folder / f".{token_hex(16)}"
        file.write_text(lock, encoding="utf-8")
        words = ["pip", "install", "--target", str(folder), "--link-mode", "copy", "--compile-bytecode"]
        words += ["--require-hashes", "--no-deps", "--no-build", *arguments_of(source, cache)]
        limits = await to_thread.run_sync(source.limits)
        command = [str(find_uv()), *words, "--requirements", str(file)]
        await run_installer(command, owner, source, limits, environment=uv_environment())
        file.unlink()
        await to_thread.run_sync(partial(shutil.rmtree, cache, ignore_errors=True))
        await to_thread.run_sync(limits.check, folder, owner)
        await to_thread.run_sync(partial(harden, folder, (), keep_programs=True))

    await filled(target.parent, target, owner, fill)


async def filled(parent: Path, target: Path | None, owner: str, fill: Callable[[Path], Awaitable[None]]) -> None:
    """Fill a temporary folder, and rename it, so that a folder that exists is complete.

    Args:
        parent: the folder in which it is made.
        target: its final path; ``None`` to remove it at the end.
        owner: what it is for, for messages.
        fill: writes its content.

    Raises:
        EnvironmentFailed: if it cannot be written.
    """
    try:
        await to_thread.run_sync(remove_temporary_folders, parent)
        temporary = await to_thread.run_sync(TemporaryFolder.make, parent)
        try:
            await fill(temporary.path)
            if target is not None:
                await to_thread.run_sync(temporary.put_in_place, target)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(temporary.remove)
    except OSError as error:
        raise EnvironmentFailed.unwritable(owner, error) from error
