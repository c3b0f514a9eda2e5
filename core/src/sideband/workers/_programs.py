"""Starts commands that nothing isolates, and owns plain processes: a command's, and a worker's."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from io import FileIO
from socket import socket

import anyio

from ..sandboxing import Isolation, ProgramProcess, ProgramRequest, WorkerUsage
from ._errors import WorkerStartFailed
from ._usage import read_usage

__all__ = ["PlainProcess", "launch_plain"]


async def launch_plain(request: ProgramRequest) -> ProgramProcess:
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
    return _PlainProgram(process)


class PlainProcess:
    """A started process that leads a session of its own; owns its pipes.

    Args:
        process: as started.
        isolation: the tier that it runs on.
        pipes: the host's ends, closed with it.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], isolation: Isolation, pipes: Sequence[FileIO | socket]
    ) -> None:
        self._process = process
        self._pipes = pipes
        self.pid = process.pid
        self.isolation = isolation

    def kill(self) -> None:
        """End it at once, with all that it started in its session's process group."""
        # Until it is reaped its id can't be anyone else's.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    def usage(self) -> WorkerUsage | None:
        """What it uses now; ``None`` if that can't be seen, or it has ended."""
        return read_usage(self.pid) if self._process.returncode is None else None

    async def wait(self) -> int:
        """Its exit code; negative for the signal that ended it."""
        if self._process.returncode is None:
            await self._wait_for_end()
        return self._process.wait()

    async def _wait_for_end(self) -> None:
        """Wait until it has ended. Where the system lets us, it is not reaped: its id stays its own."""
        if not hasattr(os, "pidfd_open"):
            await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
            return
        handle = os.pidfd_open(self.pid)
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)

    async def close(self) -> None:
        """Kill it if it still runs, reap it, and close the descriptors. Can be called again."""
        self.kill()
        with anyio.CancelScope(shield=True):
            await self.wait()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()


class _PlainProgram(PlainProcess):
    """A command that ``launch_plain`` has started. See ``ProgramProcess``."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if isinstance(pipe, FileIO)]
        super().__init__(process, Isolation.NONE, pipes)
        self.stdin, self.stdout, self.stderr = (pipe.fileno() for pipe in pipes)
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)

    def end_input(self) -> None:
        self.stdin = -1
        with contextlib.suppress(OSError):
            self._pipes[0].close()

    async def _wait_for_end(self) -> None:
        await super()._wait_for_end()
        # What it has left behind in its group, as long as its id is still its own.
        self.kill()

    async def close(self) -> None:
        await super().close()
        self.end_input()
