"""Starts worker processes: the plain one, and the building block of sandbox plugins."""

from __future__ import annotations

import json
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

# By system, the package whose sandbox fits it.
_SANDBOX_PACKAGES = {"linux": "sideband-sandbox", "darwin": "sideband-seatbelt"}


class PlainSandbox:
    """Starts workers that nothing isolates: processes of their own with an empty environment, and no more than that.

    Args:
        python: the interpreter; the host's own if ``None``.
    """

    name = "none"

    def __init__(self, python: Path | None = None) -> None:
        self._python = python

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002  nothing is bound
        """Claims nothing."""
        package = _SANDBOX_PACKAGES.get(sys.platform)
        return Probe(
            Isolation.NONE,
            gaps=("a skill can do whatever the user who runs the host can do",),
            hints=("no installed sandbox fits this system" + (f": install `{package}`" if package else ""),),
        )

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker."""
        return await launch(request, isolation=Isolation.NONE, python=self._python)

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a command."""
        return await launch_plain(request)

    async def close(self) -> None:
        """Do nothing: nothing is kept."""


async def launch(
    request: LaunchRequest,
    *,
    isolation: Isolation,
    python: Path | None = None,
    lockdown: Path | None = None,
    plan: Mapping[str, Any] | None = None,
    wrapper: Sequence[str] = (),
) -> WorkerProcess:
    """Start one worker process, for a ``Sandbox`` to return.

    It is the leader of a session of its own, has the environment of the request and nothing else, and three
    descriptors besides the protocol's: an empty standard input, and sockets for its output.

    Args:
        request: what to start.
        isolation: the tier that the sandbox has proved for workers started this way.
        python: the interpreter; the host's own if ``None``.
        lockdown: a file of the standard library only, whose ``apply(plan)`` runs in the worker before anything is
            read; if it raises, the worker ends with exit code 97 and the reason on standard error.
        plan: its argument, as JSON data. It is visible in the process list, so it holds no secret.
        wrapper: a command to put before the worker's own, such as ``bwrap`` and its arguments.

    Raises:
        WorkerStartFailed: the system did not start it.

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
        raise WorkerStartFailed(f"no worker could be started: {error}", hint="close other programs") from error
    channel, stdout, stderr = (end.fileno() for end in pipes.theirs)
    own = worker_command(request, channel, python=python, lockdown=lockdown, plan=plan)
    try:
        # In this thread on purpose: the kernel ties a worker's life to the thread that forked it.
        process = subprocess.Popen(  # noqa: S603, ASYNC220  the command is ours; a thread's end would end the worker
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
        raise WorkerStartFailed(
            f"no worker could be started: {error}", hint=f"check that {python} can be run"
        ) from error
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
    """The command line of a worker whose protocol is on ``descriptor``.

    Neither site-packages nor ``.pth`` files nor the user's environment take part (``-I -S``), and nothing is written
    next to the modules that it imports (``-B``).
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

    def was_out_of_memory(self) -> bool:
        """Never: nothing but the host's watchdog holds its memory."""
        return False
