"""Commands: programs that an op runs in the isolation of workers, and what a sandbox that can do so supplies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import anyio
from attrs import Factory, field, frozen

from ._errors import WorkerStartFailed
from ._sandbox import Isolation, Sandbox
from ._usage import WorkerUsage, read_usage

__all__ = [
    "CommandLimits",
    "CommandProcess",
    "CommandRequest",
    "CommandSandbox",
    "Place",
    "launch_plain",
    "wait_for_end",
]


@frozen
class Place:
    """A folder or file that a command may use.

    Args:
        path: absolute, without symbolic links.
        writable: whether it may change what is there.
    """

    path: Path
    writable: bool = False


@frozen
class CommandLimits:
    """Limits of one command with all that it starts. The kernel holds them as far as it can.

    Args:
        memory: bytes, of each process.
        processes: processes and threads at once.
        files: open descriptors of each process.
        file_size: bytes of one file that it writes.
        cpu_seconds: processor time of each process.
    """

    memory: int = 2 << 30
    processes: int = 256
    files: int = 256
    file_size: int = 1 << 30
    cpu_seconds: int = 3_600


@frozen
class CommandRequest:
    """One command to start. There is no shell in between.

    Args:
        arguments: the vector; the first is the absolute path of the program.
        folder: the working directory, absolute.
        environment: the whole environment; nothing is inherited.
        places: what it may read and write besides the system's programs and libraries.
        network: whether it may use the network.
        limits: see there.
    """

    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = Factory(dict)
    places: tuple[Place, ...] = ()
    network: bool = False
    limits: CommandLimits = field(factory=CommandLimits)


class CommandProcess(Protocol):
    """A started command. Whoever launched it owns it, and must ``close`` it.

    Attributes:
        pid: its process id, as the host sees it; 0 if the host can't see it.
        stdin: descriptor to write its standard input to, non-blocking; -1 once it was closed with ``end_input``.
        stdout: descriptor to read its standard output from, non-blocking.
        stderr: the same for its standard error.
        isolation: the tier that it runs on.
    """

    pid: int
    stdin: int
    stdout: int
    stderr: int
    isolation: Isolation

    def end_input(self) -> None:
        """Close its standard input: it reads the end. Can be called again."""

    def kill(self) -> None:
        """End it at once, with all that it has started. Harmless if it has ended."""

    def usage(self) -> WorkerUsage | None:
        """What it uses now, as the kernel says; ``None`` if that can't be seen, or it has ended."""

    async def wait(self) -> int:
        """Its exit code; negative for the signal that ended it."""

    async def close(self) -> None:
        """Kill all that still runs of it, reap it, and close the descriptors. Can be called again."""


@runtime_checkable
class CommandSandbox(Sandbox, Protocol):
    """A sandbox that isolates commands too, not only workers."""

    async def launch_command(self, request: CommandRequest) -> CommandProcess:
        """Start a command on the tier that was proved, or not at all: what has run can't be taken back.

        Raises:
            WorkerStartFailed: it could not be started; says what the system answered.
        """


async def launch_plain(request: CommandRequest) -> CommandProcess:
    """Start a command that nothing isolates: with an environment and descriptors of its own, and no more than that.

    What it starts is ended with it as long as it stays in its session's process group.

    Raises:
        WorkerStartFailed: the system did not start it.
    """
    try:
        # In this thread on purpose: the kernel ties a child's life to the thread that forked it.
        process = subprocess.Popen(  # noqa: S603, ASYNC220  a vector, without a shell; as above
            request.arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(request.environment),
            cwd=request.folder,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:
        raise WorkerStartFailed(
            f"`{request.arguments[0]}` could not be started: {error}", hint="check that it can be run"
        ) from error
    return _PlainCommand(process)


async def wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process has ended. Where the system lets us, it is not reaped: its id stays its own."""
    if not hasattr(os, "pidfd_open"):
        await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        return
    handle = os.pidfd_open(process.pid)
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)


class _PlainCommand:
    """A command that ``launch_plain`` has started. See ``CommandProcess``."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018  all three are pipes
        self._process = process
        self._pipes = (process.stdin, process.stdout, process.stderr)
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in self._pipes)
        self.isolation = Isolation.NONE
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)

    def end_input(self) -> None:
        self.stdin = -1
        with contextlib.suppress(OSError):
            self._pipes[0].close()

    def kill(self) -> None:
        # Until it is reaped its id can't be anyone else's.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    def usage(self) -> WorkerUsage | None:
        return read_usage(self.pid) if self._process.returncode is None else None

    async def wait(self) -> int:
        if self._process.returncode is None:
            await wait_for_end(self._process)
            # What it has left behind in its group, as long as its id is still its own.
            self.kill()
        return self._process.wait()

    async def close(self) -> None:
        self.kill()
        with anyio.CancelScope(shield=True):
            await self.wait()
        self.end_input()
        for pipe in self._pipes:
            pipe.close()
