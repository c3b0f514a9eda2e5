"""Puts packages into a folder, with uv. No code of the packages runs, unless building was asked for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from attrs import field, frozen

from ._errors import EnvironmentFailed, InstallerMissing

_KEPT_LINES = 200
_LONGEST_LINE = 4_000
# A host that is killed ends nothing any more; then the kernel ends uv, which may be running code of packages.
_ENDS_WITH_HOST = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
# What would move uv to another folder or interpreter than those that are named here.
_NOT_INHERITED = frozenset({"UV_PROJECT", "UV_PYTHON", "UV_SYSTEM_PYTHON", "UV_WORKING_DIR", "VIRTUAL_ENV"})


@frozen
class PackageSource:
    """Where packages come from, and what may be done to get them.

    Args:
        wheels: a folder of wheels; then nothing else is looked at, and nothing is fetched.
        offline: whether only what uv has fetched before may be used.
        build: whether packages without a wheel may be built here, which runs their code with the user's rights.
        on_progress: told each line that uv writes; must not block.
    """

    wheels: Path | None = None
    offline: bool = False
    build: bool = False
    on_progress: Callable[[str], object] | None = field(default=None, repr=False)


def _find_uv() -> Path:
    """The program ``uv``: that of the installed package, else one on the PATH.

    Raises:
        InstallerMissing: there is neither.
    """
    with suppress(ImportError, FileNotFoundError):
        return Path(import_module("uv").find_uv_bin())
    # an entry that is no full path means the working directory, whose programs nobody chose
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if Path(folder).is_absolute()]
    found = shutil.which("uv", path=os.pathsep.join(folders))
    if found is None:
        raise InstallerMissing
    return Path(found)


async def install_packages(folder: Path, skill: str, requirements: Iterable[str], source: PackageSource) -> None:
    """Install these packages and what they need into ``folder``, for this interpreter.

    When it is cancelled, uv and all that it started have ended before it returns.

    Args:
        folder: where to.
        skill: whose packages they are, for messages.
        requirements: names of packages and their versions, nothing that leads elsewhere.
        source: where they come from.

    Raises:
        InstallerMissing: there is no uv.
        EnvironmentFailed: uv could not do it.
    """
    command = [*_bound_to_host(), str(_find_uv()), *_words(folder, source), "--", *requirements]
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    process = await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # uv reads settings in the folder that it runs in and in those above it; the user's own count all the same
        cwd="/",
        env=environment,
        start_new_session=True,
    )
    try:
        output = await _follow(process, source.on_progress)
        exit_code = await process.wait()
    finally:
        _end(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if exit_code:
        raise EnvironmentFailed.of_uv(skill, exit_code, output)


def _bound_to_host() -> list[str]:
    """What to put before a program so that it ends with this process, where the system has a way to do it."""
    if sys.platform != "linux":
        return []
    return [sys.executable, "-I", "-S", "-c", _ENDS_WITH_HOST, str(os.getpid())]


def _words(folder: Path, source: PackageSource) -> list[str]:
    words = ["pip", "install", "--target", str(folder), "--python", sys.executable, "--no-python-downloads"]
    words += ["--color", "never", "--no-progress"]
    # a link into uv's cache could be changed from there; and workers can't keep what they compile
    words += ["--link-mode", "copy", "--compile-bytecode"]
    if not source.build:
        words.append("--no-build")
    if source.offline or source.wheels is not None:
        words.append("--offline")
    if source.wheels is not None:
        words += ["--no-index", "--find-links", str(source.wheels.absolute())]
    return words


async def _follow(process: Process, on_progress: Callable[[str], object] | None) -> list[str]:
    """Hand on each line that uv writes, until it writes no more; the last ones are returned."""
    assert process.stderr is not None  # noqa: S101 - it was asked for
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
    """End uv, and what it started to build."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
