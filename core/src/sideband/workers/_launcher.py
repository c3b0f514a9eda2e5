"""Launch worker processes: the sandbox without isolation, and the launch function that sandbox plugins use."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..sandboxing import Isolation, LaunchRequest, Probe, ProgramProcess, ProgramRequest, WorkerProcess
from ._errors import WorkerStartFailed
from ._pipes import WorkerPipes
from ._programs import PlainProcess, launch_plain
from ._sdk_files import WORKER_FILE

__all__ = ["PlainSandbox", "launch", "worker_command"]

# The sandbox package for each platform.
_SANDBOX_PACKAGES = {"linux": "sideband-sandbox", "darwin": "sideband-seatbelt"}


class PlainSandbox:
    """A sandbox without isolation. Workers are separate processes with an empty environment, and nothing more.

    Args:
        python: the interpreter, or ``None`` for that of the host.
    """

    name = "none"

    def __init__(self, python: Path | None = None) -> None:
        self._python = python

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002  no folder is mounted
        """Report the tier ``none``."""
        package = _SANDBOX_PACKAGES.get(sys.platform)
        return Probe(
            Isolation.NONE,
            gaps=("a skill can do everything that the host's user can do",),
            hints=("no installed sandbox supports this system" + (f": install `{package}`" if package else ""),),
        )

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker."""
        return await launch(request, isolation=Isolation.NONE, python=self._python)

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a program."""
        return await launch_plain(request)

    async def close(self) -> None:
        """Do nothing, because there are no resources to release."""


async def launch(
    request: LaunchRequest,
    *,
    isolation: Isolation,
    python: Path | None = None,
    lockdown: Path | None = None,
    plan: Mapping[str, Any] | None = None,
    wrapper: Sequence[str] = (),
) -> WorkerProcess:
    """Start a worker process. Implementations of ``Sandbox.launch`` use it.

    The worker is the leader of its own session. It has only the environment of the request, and three descriptors
    besides that of the protocol: an empty standard input, and sockets for standard output and error.

    Args:
        request: the worker to start.
        isolation: the tier that the sandbox has proved for workers started this way.
        python: the interpreter, or ``None`` for that of the host.
        lockdown: a Python file that uses only the standard library. The worker calls its ``apply(plan)`` before it
            reads anything. If that raises, the worker exits with code 97 and the reason on standard error.
        plan: the argument of ``apply``, as JSON data. It must not contain secrets, because it is visible in the process
            list.
        wrapper: a command to prepend to the worker's own, such as ``bwrap`` and its arguments.

    Raises:
        WorkerStartFailed: if the process could not be started.

    Example:
        >>> async def launch_confined(request: LaunchRequest) -> WorkerProcess:
        ...     lockdown = Path(__file__).with_name("_lockdown.py")
        ...     tier = Isolation.NO_NAMESPACES
        ...     return await launch(request, isolation=tier, lockdown=lockdown, plan={"memory": 1 << 30})
    """
    python = python or Path(sys.executable)
    try:
        pipes = WorkerPipes.open()
    except OSError as error:
        raise WorkerStartFailed(f"cannot start a worker: {error}", hint="close other programs") from error
    channel, stdout, stderr = (end.fileno() for end in pipes.theirs)
    own = worker_command(request, channel, python=python, lockdown=lockdown, plan=plan)
    try:
        # Fork in this thread: the kernel's parent-death signal is sent when the forking thread ends.
        process = subprocess.Popen(  # noqa: S603, ASYNC220  the command is trusted; for the thread, see above
            [*wrapper, *own],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=dict(request.environment),
            cwd="/",
            pass_fds=[channel],
            start_new_session=True,
        )
    except OSError as error:
        pipes.close()
        raise WorkerStartFailed(f"cannot start a worker: {error}", hint=f"check that {python} is executable") from error
    pipes.close_theirs()
    return _PlainWorker(process, pipes, isolation)


def worker_command(
    request: LaunchRequest,
    descriptor: int,
    *,
    python: Path,
    lockdown: Path | None = None,
    plan: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the command line of a worker with the protocol on ``descriptor``.

    It ignores site-packages, ``.pth`` files and the user's environment (``-I -S``), and writes no bytecode (``-B``).
    """
    command = [str(python), "-I", "-S", "-B", str(request.sdk / WORKER_FILE), "--fd", str(descriptor)]
    command += ["--sdk", str(request.sdk)]
    if request.packages is not None:
        command += ["--packages", str(request.packages)]
    if lockdown is not None:
        command += ["--lockdown", str(lockdown), "--plan", json.dumps(dict(plan or {}))]
    return command


class _PlainWorker(PlainProcess):
    """A worker process that ``launch`` has started. See ``WorkerProcess``."""

    def __init__(self, process: subprocess.Popen[bytes], pipes: WorkerPipes, isolation: Isolation) -> None:
        super().__init__(process, isolation, (pipes.channel, pipes.stdout, pipes.stderr))
        self.channel = pipes.channel
        self.stdout = pipes.stdout.fileno()
        self.stderr = pipes.stderr.fileno()

    def show_stack(self) -> None:
        """See ``WorkerProcess.show_stack``."""
        # `Popen` reaps the process itself, so the id cannot belong to another process.
        self._process.send_signal(signal.SIGURG)

    def was_out_of_memory(self) -> bool:
        """Return ``False``, because only the host's watchdog limits its memory."""
        return False
