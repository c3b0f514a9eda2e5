"""Run uv to install packages into a folder. No package code runs unless building is allowed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from secrets import token_hex

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from attrs import field, frozen

from ._errors import EnvironmentFailed, InstallerMissing
from ._limits import MAX_BYTES, PackageLimits, limited, remove_leftovers

_KEPT_LINES = 200
_LONGEST_LINE = 4_000
# If the host is killed it cannot terminate uv, which may be running package code; the kernel then does.
_ENDS_WITH_HOST = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
# Variables that would point uv at a different folder or interpreter.
_NOT_INHERITED = frozenset({"UV_PROJECT", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_WORKING_DIR", "VIRTUAL_ENV"})


@frozen
class PackageSource:
    """Where packages come from and how they may be obtained.

    Args:
        wheels: a folder of wheels; if set, no other source is used and nothing is downloaded.
        offline: whether to use uv's cache only.
        build: whether packages without a wheel may be built, which runs their code with the user's rights.
        on_progress: called with each line that uv writes; must not block.
        max_bytes: the maximum size of all packages when unpacked. For a folder of wheels, it is also limited to 100
            times the size of the wheels, or 32 MiB if that is more.
    """

    wheels: Path | None = None
    offline: bool = False
    build: bool = False
    on_progress: Callable[[str], object] | None = field(default=None, repr=False)
    max_bytes: int = field(default=MAX_BYTES, kw_only=True)

    def limits(self) -> PackageLimits:
        """Return the limits on what is installed."""
        return PackageLimits.of(self.max_bytes, self.wheels)


def _find_uv() -> Path:
    """Return the path of ``uv``: that of the installed package, otherwise one on the PATH.

    Raises:
        InstallerMissing: if there is neither.
    """
    with suppress(ImportError, FileNotFoundError):
        return Path(import_module("uv").find_uv_bin())
    # a relative PATH entry depends on the working directory, which may contain untrusted programs
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    found = shutil.which("uv", path=os.pathsep.join(folders))
    if found is None:
        raise InstallerMissing
    return Path(found)


async def install_packages(folder: Path, skill: str, requirements: Iterable[str], source: PackageSource) -> None:
    """Install packages and their dependencies into ``folder``, for this interpreter.

    If cancelled, uv and all processes that it started have ended when the call returns.

    Args:
        folder: the target folder.
        skill: the name of the skill, for messages.
        requirements: names and versions of packages, without URLs or paths.
        source: where the packages come from.

    Raises:
        InstallerMissing: if uv was not found.
        EnvironmentFailed: if uv failed, or the packages exceed the limits.
    """
    limits = await to_thread.run_sync(source.limits)
    # An unguessable name, so that no package contains a file in it.
    cache = folder / f".{token_hex(16)}"
    command = [*_bound_to_host(), str(_find_uv()), *_arguments(folder, cache, source), "--", *requirements]
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # uv reads settings in the working directory and its parents; the user's own settings apply anyway
        cwd="/",
        env=environment,
        start_new_session=True,
    )
    try:
        with limited(process.pid, limits) as watch:
            output = await _follow(process, source.on_progress)
            exit_code = await process.wait()
    finally:
        _end(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if watch.exceeded:
        await to_thread.run_sync(remove_leftovers, watch.leftovers)
        raise EnvironmentFailed.too_large(skill, limits.size, limits.files)
    if exit_code:
        raise EnvironmentFailed.of_uv(skill, exit_code, output)
    await to_thread.run_sync(partial(shutil.rmtree, cache, ignore_errors=True))
    await to_thread.run_sync(limits.check, folder, skill)


def _bound_to_host() -> list[str]:
    """Return a command prefix that kills the program when this process dies; empty where that is not supported."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", "-c", _ENDS_WITH_HOST, str(os.getpid())]


def _arguments(folder: Path, cache: Path, source: PackageSource) -> list[str]:
    arguments = ["pip", "install", "--target", str(folder), "--python", sys.executable, "--no-python-downloads"]
    arguments += ["--color", "never", "--no-progress"]
    # a link into uv's cache could be changed through it; workers cannot save bytecode that they compile
    arguments += ["--link-mode", "copy", "--compile-bytecode"]
    if not source.build:
        arguments.append("--no-build")
    if source.offline or source.wheels is not None:
        arguments.append("--offline")
    if source.wheels is not None:
        arguments += ["--no-index", "--find-links", str(source.wheels.absolute()), "--cache-dir", str(cache)]
    return arguments


async def _follow(process: Process, on_progress: Callable[[str], object] | None) -> list[str]:
    """Pass each line that uv writes to ``on_progress``; return the last ones at end of output."""
    assert process.stderr is not None  # noqa: S101 - requested above
    kept: deque[str] = deque(maxlen=_KEPT_LINES)
    begun = ""
    async for text in TextReceiveStream(process.stderr, errors="replace"):
        *lines, begun = (begun + text).split("\n")
        begun = begun[-_LONGEST_LINE:]
        for line in lines:
            kept.append(line)
            if on_progress is not None and line.strip():
                on_progress(line.strip())
    kept.append(begun)
    return list(kept)


def _end(process: Process) -> None:
    """Kill uv and all processes that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
