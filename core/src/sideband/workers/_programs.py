"""Launch programs without isolation, and manage plain processes of programs and workers."""

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
    """Start a program without isolation. It has its own environment and descriptors, and nothing more.

    Its descendants are killed with it, unless they leave the process group of its session.

    Raises:
        WorkerStartFailed: if the program could not be started.
    """
    try:
        # Fork in this thread: the kernel's parent-death signal is sent when the forking thread ends.
        process = subprocess.Popen(  # noqa: S603, ASYNC220  runs without a shell; for the thread, see above
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
            f"cannot start `{request.arguments[0]}`: {error}", hint="check that it is executable"
        ) from error
    return _PlainProgram(process)


class PlainProcess:
    """A started process, which is the leader of its own session. It owns its pipes.

    Args:
        process: the started process.
        isolation: the tier that it runs on.
        pipes: the host's ends of the pipes, which ``close`` closes.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], isolation: Isolation, pipes: Sequence[FileIO | socket]
    ) -> None:
        self._process = process
        self._pipes = pipes
        self.pid = process.pid
        self.isolation = isolation

    def kill(self) -> None:
        """Kill the process and all processes in its process group."""
        # The process id cannot be reused before the process is reaped.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()

    def usage(self) -> WorkerUsage | None:
        """Return the current usage, or ``None`` if it is unknown or the process has exited."""
        return read_usage(self.pid) if self._process.returncode is None else None

    async def wait(self) -> int:
        """Wait for the process and return its exit code, or the negative signal number if a signal killed it."""
        if self._process.returncode is None:
            await self._wait_for_end()
        return self._process.wait()

    async def _wait_for_end(self) -> None:
        """Wait until the process has exited. With ``pidfd_open``, do not reap it, so that its id cannot be reused."""
        if not hasattr(os, "pidfd_open"):
            await anyio.to_thread.run_sync(self._process.wait, abandon_on_cancel=True)
            return
        handle = os.pidfd_open(self.pid)
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)

    async def close(self) -> None:
        """Kill the process if necessary, reap it, and close the descriptors. Idempotent."""
        self.kill()
        with anyio.CancelScope(shield=True):
            await self.wait()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()


class _PlainProgram(PlainProcess):
    """A program that ``launch_plain`` has started. See ``ProgramProcess``."""

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

    def terminate(self) -> None:
        # The process id cannot be reused before the process is reaped.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGTERM)

    async def _wait_for_end(self) -> None:
        await super()._wait_for_end()
        # Kill the remaining processes of its group, before the group id can be reused.
        self.kill()

    async def close(self) -> None:
        await super().close()
        self.end_input()
