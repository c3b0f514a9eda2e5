"""Starts commands that nothing isolates, and waits for processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess

import anyio

from ..sandboxing import Isolation, ProgramProcess, ProgramRequest, WorkerUsage
from ._errors import WorkerStartFailed
from ._usage import read_usage

__all__ = ["launch_plain", "wait_for_end"]


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


class _PlainProgram:
    """A command that ``launch_plain`` has started. See ``ProgramProcess``."""

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
