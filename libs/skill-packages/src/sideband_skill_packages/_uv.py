"""Run uv to install packages into a folder. No package code runs unless building is allowed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex

import anyio
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from attrs import field, frozen

from ._errors import EnvironmentFailed
from ._limits import MAX_BYTES, PackageLimits, limited, remove_leftovers
from ._program import find_uv, uv_environment

_KEPT_LINES = 200
_LONGEST_LINE = 4_000
# If the host is killed it cannot terminate uv, which may be running package code; the kernel then does.
_ENDS_WITH_HOST = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


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
    words = [*_arguments(folder, cache, source), "--", *requirements]
    await run_installer([str(find_uv()), *words], f"skill `{skill}`", source, limits, environment=uv_environment())
    await to_thread.run_sync(partial(shutil.rmtree, cache, ignore_errors=True))
    await to_thread.run_sync(limits.check, folder, f"skill `{skill}`")


async def run_installer(
    command: Sequence[str],
    owner: str,
    source: PackageSource,
    limits: PackageLimits,
    *,
    environment: Mapping[str, str],
    folder: str = "/",
) -> None:
    """Run a program that installs packages, and end it and all that it started if it writes too much.

    Args:
        command: the program and its arguments.
        owner: what the packages are for, for messages.
        source: gets the lines that the program writes.
        limits: the limits on what it writes.
        environment: its variables.
        folder: its working directory; by default one in which no program reads settings.

    Raises:
        EnvironmentFailed: if it failed, or the packages exceed the limits.
    """
    process = await anyio.open_process(
        [*_bound_to_host(), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=folder,
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
        raise EnvironmentFailed.too_large(owner, limits.size, limits.files)
    if exit_code:
        raise EnvironmentFailed.of_installer(Path(command[0]).name, owner, exit_code, output)


def _bound_to_host() -> list[str]:
    """Return a command prefix that kills the program when this process dies; empty where that is not supported."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", "-c", _ENDS_WITH_HOST, str(os.getpid())]


def _arguments(folder: Path, cache: Path, source: PackageSource) -> list[str]:
    arguments = ["pip", "install", "--target", str(folder)]
    # a link into uv's cache could be changed through it; workers cannot save bytecode that they compile
    arguments += ["--link-mode", "copy", "--compile-bytecode"]
    if not source.build:
        arguments.append("--no-build")
    return [*arguments, *arguments_of(source, cache)]


def arguments_of(source: PackageSource, cache: Path) -> list[str]:
    """Return the arguments of uv for a source and for this interpreter.

    Args:
        source: where packages come from.
        cache: the folder of the cache, for a folder of wheels.
    """
    arguments = ["--python", sys.executable, "--no-python-downloads", "--color", "never", "--no-progress"]
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
