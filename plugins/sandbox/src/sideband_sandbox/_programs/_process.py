"""The host's side of one program: starts its keeper, receives its messages, and kills all of its processes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from attrs import define, field
from sideband.state import TemporaryFolder
from sideband.workers import Isolation, ProgramLimits, WorkerLimits, WorkerStartFailed, WorkerUsage, read_usage

from .._errors import ProgramNotStarted
from .._inside import LOCKDOWN, PROGRAM_EXECUTION, PROGRAM_KEEPER, PROGRAM_ROOT, Plan
from .._machine._cgroups import Cgroups, WorkerCgroup
from .._machine._processes import pid_of, wait_for_end
from .._machine._temporary import make_folder

_START_SECONDS = 20.0
_END_SECONDS = 5.0
_LONGEST_ANSWER = 4_096
# The keeper and the init process.
_OWN_PROCESSES = 2
PREFIX = "sideband-command-"
_TO_GROUP = 4  # PIDFD_SIGNAL_PROCESS_GROUP


@define(eq=False)
class _Pipes:
    """Both ends of the three standard streams of a program."""

    ours: list[int] = field(factory=list)
    theirs: list[int] = field(factory=list)

    @classmethod
    def open(cls) -> _Pipes:
        """Open the pipes. Raises ``OSError`` if no descriptors are left."""
        made = cls()
        try:
            for number in range(3):
                ends = os.pipe2(os.O_CLOEXEC)
                ours, theirs = reversed(ends) if number == 0 else ends
                made.ours.append(ours)
                made.theirs.append(theirs)
                os.set_blocking(ours, False)
        except OSError:
            made.close_theirs()
            _close(made.ours)
            raise
        return made

    def close_theirs(self) -> None:
        _close(self.theirs)
        self.theirs.clear()


async def start_program(
    python: Path, plan: Plan, isolation: Isolation, cgroups: Cgroups | None, limits: ProgramLimits
) -> IsolatedProgram:
    """Start a program, and wait until it runs.

    Args:
        python: the interpreter that carries out the plan.
        plan: the result of ``program_plan``.
        isolation: the tier that the plan provides.
        cgroups: where control groups can be created, if they can.
        limits: the limits of the program.

    Raises:
        ProgramNotStarted: if a step of the plan fails.
        WorkerStartFailed: if the system lacks processes or descriptors.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    pipes: _Pipes | None = None
    try:
        pipes = _Pipes.open()
        process = _start_keeper(python, plan, theirs, pipes.theirs)
    except OSError as error:
        ours.close()
        _close([] if pipes is None else pipes.ours)
        raise WorkerStartFailed(f"cannot start a program: {error}", hint="close other programs") from error
    finally:
        theirs.close()
        if pipes is not None:
            pipes.close_theirs()
    program = IsolatedProgram(process, ours, pipes.ours, isolation)
    try:
        await program.begin(cgroups, limits)
    except BaseException:
        await program.close()
        raise
    return program


def _start_keeper(python: Path, plan: Plan, control: socket.socket, streams: Sequence[int]) -> subprocess.Popen[bytes]:
    # In a memfd: the plan may exceed the length limit of an argument, and other users can read arguments.
    with os.fdopen(os.memfd_create("plan", os.MFD_CLOEXEC), "w+b", buffering=0) as orders:
        orders.write(json.dumps(plan).encode())
        orders.seek(0)
        own = [str(control.fileno()), str(orders.fileno()), *map(str, (LOCKDOWN, PROGRAM_ROOT, PROGRAM_EXECUTION))]
        # Not in a worker thread: the kernel sends PDEATHSIG when the thread that forked the process exits.
        return subprocess.Popen(  # noqa: S603 - the command is fixed
            [str(python), "-I", "-S", "-B", "-X", "utf8", str(PROGRAM_KEEPER), *own],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            env={},
            cwd="/",
            pass_fds=[control.fileno(), orders.fileno()],
            start_new_session=True,
        )


class IsolatedProgram:
    """A running program. Implements ``sideband.workers.ProgramProcess``."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: socket.socket,
        streams: Sequence[int],
        isolation: Isolation,
    ) -> None:
        self.pid = 0
        self.stdin, self.stdout, self.stderr = streams
        self.isolation = isolation
        self._process = process
        self._control = control
        self._temporary: TemporaryFolder | None = None
        self._first: int | None = None  # the pidfd of the init process, or of the keeper without namespaces
        self._handle: int | None = None
        self._has_namespace = isolation is Isolation.FULL
        self._code: int | None = None
        self._over = False
        self._killed = False
        self._closed = False
        self._cgroup: WorkerCgroup | None = None
        self._waiting = anyio.Lock()

    def own(self, temporary: TemporaryFolder) -> None:
        """Take ownership of the program's temporary folder; ``close`` removes it."""
        self._temporary = temporary

    async def begin(self, cgroups: Cgroups | None, limits: ProgramLimits) -> None:
        """Wait until the program runs. Raises ``ProgramNotStarted``."""
        with anyio.move_on_after(_START_SECONDS) as starting:
            _, (self._first,) = await self._expect("keeper")
            await self._confine(cgroups, limits)
            # If the keeper has exited, the reason is in its last message.
            with contextlib.suppress(OSError):
                self._control.send(json.dumps({"confined": self._cgroup is not None}).encode())
            _, (self._handle,) = await self._expect("started")
            self.pid = pid_of(self._handle)
        if starting.cancelled_caught:
            raise ProgramNotStarted(f"the program was not ready within {_START_SECONDS:g} s")

    async def _expect(self, expected: str) -> tuple[dict[str, Any], list[int]]:
        while True:
            await anyio.wait_readable(self._control)
            answer, handles = self._receive()
            if answer is None:
                raise ProgramNotStarted("the keeper has exited")
            if "failed" in answer:
                raise ProgramNotStarted(answer["failed"], step=answer["step"], number=answer["errno"])
            if expected in answer and handles:
                return answer, handles
            _close(handles)

    def _receive(self) -> tuple[dict[str, Any] | None, list[int]]:
        """Return the next message, or ``None`` if the keeper has closed the socket."""
        try:
            message, handles, _, _ = socket.recv_fds(self._control, _LONGEST_ANSWER, 1, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return None, []
        return (json.loads(message) if message else None), handles

    async def _confine(self, cgroups: Cgroups | None, limits: ProgramLimits) -> None:
        """Put all processes of the program into one control group, if possible."""
        pid = pid_of(self._first) if self._first is not None else 0
        if cgroups is None or not pid:
            return
        held = WorkerLimits(memory=limits.memory, threads=limits.processes + _OWN_PROCESSES)
        with contextlib.suppress(OSError), anyio.CancelScope(shield=True):
            self._cgroup = await anyio.to_thread.run_sync(cgroups.confine, pid, held)

    def end_input(self) -> None:
        """Close the program's standard input. May be called more than once."""
        if self.stdin >= 0:
            stdin, self.stdin = self.stdin, -1
            anyio.notify_closing(stdin)
            os.close(stdin)

    def terminate(self) -> None:
        """Send SIGTERM to the program and its process group. Does nothing if it has exited."""
        if self._closed or not self.pid or self._handle is None:
            return
        with contextlib.suppress(OSError):
            try:
                signal.pidfd_send_signal(self._handle, signal.SIGTERM, None, _TO_GROUP)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                # Before Linux 6.9. The program is the leader of its session, so its process id is that of the group.
                signal.pidfd_send_signal(self._handle, 0)
                os.killpg(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the program and its descendants. Does nothing if it has exited."""
        if self._killed or self._closed:
            return
        self._killed = True
        if self._has_namespace and self._first is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
            return
        if self._first is None:
            self._process.kill()
        with contextlib.suppress(OSError):
            # The keeper detects this and kills all processes, which only it can find.
            self._control.shutdown(socket.SHUT_WR)

    def usage(self) -> WorkerUsage | None:
        """Return the current usage of the program's first process, or ``None`` if it has exited."""
        if self._closed or not self.pid or self._handle is None:
            return None
        try:
            # The process ID may be reused after its exit; the pidfd is not.
            signal.pidfd_send_signal(self._handle, 0)
        except OSError:
            return None
        return read_usage(self.pid)

    def was_out_of_memory(self) -> bool:
        """Return whether the program was killed for exceeding its memory limit. Call it after the exit."""
        return self._over or (self._cgroup is not None and self._cgroup.was_out_of_memory())

    async def wait(self) -> int:
        """Wait until all of its processes have exited. Return the exit code, or a negative signal number."""
        async with self._waiting:
            if self._code is None:
                await wait_for_end(self._process)
                self._code = self._read_exit_code()
        return self._code

    def _read_exit_code(self) -> int:
        code = -signal.SIGKILL
        while True:
            answer, handles = self._receive()
            if answer is None:
                return code
            _close(handles)
            code = answer.get("ended", code)
            self._over = self._over or "over" in answer

    async def close(self) -> None:
        """Kill and reap all of its processes, and close the descriptors. May be called more than once."""
        if self._closed:
            return
        self.kill()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_END_SECONDS):
                await self.wait()
            self._process.kill()
            await self.wait()
            self._closed = True
            self._release()
            await anyio.to_thread.run_sync(self._remove)

    def _release(self) -> None:
        self.end_input()
        for descriptor in (self.stdout, self.stderr):
            anyio.notify_closing(descriptor)
        _close([self.stdout, self.stderr])
        _close([handle for handle in (self._first, self._handle) if handle is not None])
        self._control.close()

    def _remove(self) -> None:
        if self._cgroup is not None:
            self._cgroup.close()
        if self._temporary is not None:
            self._temporary.remove()


@asynccontextmanager
async def temporary_folder(uid: int | None) -> AsyncIterator[TemporaryFolder]:
    """Create a temporary folder for one program. It is removed only if the body raises."""
    temporary = await anyio.to_thread.run_sync(_make_folder, uid)
    try:
        yield temporary
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(temporary.remove)
        raise


def own_folder(temporary: TemporaryFolder) -> Path:
    """Return the folder in it that belongs to the program's user; the host keeps the outer one, and its lock."""
    return temporary.path / "own"


def _make_folder(uid: int | None) -> TemporaryFolder:
    temporary = make_folder(PREFIX)
    try:
        own = own_folder(temporary)
        own.mkdir(mode=0o700)
        if uid is not None:
            temporary.path.chmod(0o711)
            os.chown(own, uid, uid)
    except BaseException:
        temporary.remove()
        raise
    return temporary


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
