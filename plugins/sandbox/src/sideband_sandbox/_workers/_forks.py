"""The host's side of a zygote: starts it, requests workers from it, and receives their exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from sideband.workers import (
    Isolation,
    LaunchRequest,
    WorkerLimits,
    WorkerPipes,
    WorkerStartFailed,
    WorkerUsage,
    read_usage,
    runtime_files,
)

from .._errors import ZygoteFailed
from .._inside import LOCKDOWN, ZYGOTE, Plan
from .._machine._cgroups import Cgroups, WorkerCgroup
from .._machine._processes import pid_of, wait_for_end

_RUNTIME = Path(runtime_files()["sideband/workers/runtime/__init__.py"]).parent

# By default glibc reserves an arena for each thread, which would exhaust the limit of the address space.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
_START_SECONDS = 20.0
_FORK_SECONDS = 10.0
_END_SECONDS = 5.0
_LONGEST_ANSWER = 4_096
_LONGEST_REASON = 500


class Zygote:
    """A running zygote. The caller must close it.

    Attributes:
        isolation: the tier of its workers.
        ended: whether it is known to have exited.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, isolation: Isolation) -> None:
        self.isolation = isolation
        self.ended = False
        self._process = process
        self._control = control
        self._orders = 0
        self._ordering = anyio.Lock()
        self._reading = anyio.Lock()
        self._forked: dict[int, tuple[dict[str, Any], list[int]]] = {}
        self._codes: dict[int, int] = {}

    @classmethod
    async def start(cls, python: Path, isolation: Isolation, zygote: Plan, worker: Plan) -> Zygote:
        """Start a zygote, and wait until it is locked down.

        Args:
            python: the interpreter.
            isolation: the tier of its workers.
            zygote: the plan of the zygote.
            worker: the plan of its workers.

        Raises:
            ZygoteFailed: if it cannot be executed, or a step of its plan fails.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            process = _start(python, theirs, zygote, worker)
        except OSError as error:
            ours.close()
            raise ZygoteFailed(f"cannot run {python}: {error}") from error
        finally:
            theirs.close()
        started = cls(process, ours, isolation)
        try:
            await started._wait_until_ready()
        except BaseException:
            await started.close()
            raise
        return started

    async def _wait_until_ready(self) -> None:
        with anyio.move_on_after(_START_SECONDS) as starting:
            await anyio.wait_readable(self._control)
            if not self._control.recv(_LONGEST_ANSWER):
                raise ZygoteFailed(await self._exit_reason())
        if starting.cancelled_caught:
            raise ZygoteFailed(f"the zygote was not ready within {_START_SECONDS:g} s")

    async def fork(self, request: LaunchRequest, orders: Mapping[str, Any]) -> ForkedWorker:
        """Fork a worker.

        Raises:
            ZygoteFailed: if the zygote has exited.
            WorkerStartFailed: if the system lacks processes or descriptors.
        """
        try:
            pipes = WorkerPipes.open()
        except OSError as error:
            raise WorkerStartFailed(f"cannot start a worker: {error}", hint="close other programs") from error
        try:
            # Once the order is sent, its answer must be read, because it carries a descriptor.
            with anyio.CancelScope(shield=True):
                identifier, handle = await self._order(request, orders, pipes)
        except BaseException:
            pipes.close()
            raise
        finally:
            pipes.close_theirs()
        return ForkedWorker(self, identifier, handle, pipes)

    async def _order(self, request: LaunchRequest, orders: Mapping[str, Any], pipes: WorkerPipes) -> tuple[int, int]:
        async with self._ordering:
            self._orders += 1
            identifier = self._orders
            message = {
                "id": identifier,
                "steps": dict(orders),
                "sdk": str(request.sdk),
                "packages": str(request.packages or ""),
                "environment": {**_ENVIRONMENT, **request.environment},
            }
            try:
                with anyio.fail_after(_FORK_SECONDS):
                    await self._send(json.dumps(message).encode(), [end.fileno() for end in pipes.theirs])
                    await self._read_until(lambda: identifier in self._forked)
            except TimeoutError:
                self._kill()
                raise ZygoteFailed(f"the zygote did not answer within {_FORK_SECONDS:g} s") from None
            answer, handles = self._forked.pop(identifier, ({}, []))
        if not handles:
            if "error" in answer:
                hint = "close other programs, or allow fewer workers"
                raise WorkerStartFailed(f"cannot start a worker: {answer['error']}", hint=hint)
            raise ZygoteFailed("the zygote has exited")
        return identifier, handles[0]

    async def _send(self, message: bytes, descriptors: list[int]) -> None:
        while True:
            try:
                socket.send_fds(self._control, [message], descriptors)
            except BlockingIOError:
                await anyio.wait_writable(self._control)
            except OSError:
                self.ended = True
                return
            else:
                return

    async def code_of(self, identifier: int) -> int:
        """Return the exit code of a worker that has exited; that of SIGKILL if the zygote has exited too."""
        with anyio.move_on_after(_END_SECONDS):
            await self._read_until(lambda: identifier in self._codes)
        return self._codes.pop(identifier, -signal.SIGKILL)

    async def _read_until(self, found: Callable[[], bool]) -> None:
        """Receive answers, also those for other callers, until the condition holds or the zygote has exited."""
        while not found() and not self.ended:
            async with self._reading:
                if not found() and not self.ended:
                    await self._wait_for_answer()
                    self._receive()

    async def _wait_for_answer(self) -> None:
        try:
            await anyio.wait_readable(self._control)
        except (anyio.ClosedResourceError, ValueError):
            self.ended = True

    def _receive(self) -> None:
        try:
            message, handles, _, _ = socket.recv_fds(self._control, _LONGEST_ANSWER, 1, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except OSError:
            message, handles = b"", []
        if not message:
            self.ended = True
            return
        answer = json.loads(message)
        if "ended" in answer:
            self._codes[answer["id"]] = answer["ended"]
        else:
            self._forked[answer["id"]] = answer, handles

    async def _exit_reason(self) -> str:
        """Return why the zygote exited before it was ready."""
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe
        code = await wait_for_end(self._process)
        stderr = self._process.stderr.read(_LONGEST_ANSWER).decode(errors="replace").strip()
        return stderr[-_LONGEST_REASON:] or f"the zygote exited with code {code}"

    def _kill(self) -> None:
        self.ended = True
        self._process.kill()

    async def close(self) -> None:
        """Stop the zygote and its remaining workers. May be called more than once."""
        self.ended = True
        anyio.notify_closing(self._control)
        self._control.close()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_END_SECONDS):
                # The process outside the namespace exits after the zygote inside it; if killed, it would exit before.
                await wait_for_end(self._process)
            self._process.kill()
            await wait_for_end(self._process)
        if self._process.stderr is not None:
            self._process.stderr.close()
        for _, handles in self._forked.values():
            for handle in handles:
                os.close(handle)
        self._forked.clear()


def _start(python: Path, control: socket.socket, zygote: Plan, worker: Plan) -> subprocess.Popen[bytes]:
    options = {"lockdown": str(LOCKDOWN), "workers": str(_RUNTIME.parent), "zygote": zygote, "worker": worker}
    # Not in a worker thread: the kernel sends PDEATHSIG when the thread that forked the process exits.
    return subprocess.Popen(  # noqa: S603 - the command is fixed
        [str(python), "-I", "-S", "-B", "-X", "utf8", str(ZYGOTE), str(control.fileno()), json.dumps(options)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_ENVIRONMENT,
        cwd="/",
        pass_fds=[control.fileno()],
        start_new_session=True,
    )


class ForkedWorker:
    """A worker forked by a zygote. Implements ``sideband.workers.WorkerProcess``."""

    def __init__(self, zygote: Zygote, identifier: int, handle: int, pipes: WorkerPipes) -> None:
        self._zygote = zygote
        self._identifier = identifier
        self._handle = handle
        self._pipes = pipes
        self._code: int | None = None
        self._learning = anyio.Lock()
        self._closed = False
        self._cgroup: WorkerCgroup | None = None
        self.pid = pid_of(handle)
        self.channel = pipes.channel
        self.stdout = pipes.stdout.fileno()
        self.stderr = pipes.stderr.fileno()
        self.isolation = zygote.isolation

    async def confine(self, cgroups: Cgroups, limits: WorkerLimits) -> None:
        """Put the worker into a control group, if possible. The watchdog enforces its limits too."""
        if self.pid:
            with contextlib.suppress(OSError), anyio.CancelScope(shield=True):
                self._cgroup = await anyio.to_thread.run_sync(cgroups.confine, self.pid, limits)

    def kill(self) -> None:
        """Kill the worker. Does nothing if it has exited."""
        if not self._closed:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def usage(self) -> WorkerUsage | None:
        """Return its current usage, or ``None`` if it is not visible or has exited."""
        if self._closed or not self.pid:
            return None
        try:
            # The process ID may be reused after its exit; the pidfd is not.
            signal.pidfd_send_signal(self._handle, 0)
        except OSError:
            return None
        return read_usage(self.pid)

    async def wait(self) -> int:
        """Wait for the worker to exit. Return the exit code, or a negative signal number."""
        if self._code is None:
            await self._wait_for_end()
        async with self._learning:
            if self._code is None:
                self._code = await self._zygote.code_of(self._identifier)
        return self._code

    async def _wait_for_end(self) -> None:
        # Each caller needs its own descriptor, because event loops allow one waiter per descriptor.
        handle = os.dup(self._handle)
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)

    def show_stack(self) -> None:
        """Make the runtime print its stack to standard error. Does nothing if the worker has exited."""
        if not self._closed:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGURG)

    def was_out_of_memory(self) -> bool:
        """Return whether the kernel killed the worker for exceeding its memory limit."""
        return self._cgroup is not None and self._cgroup.was_out_of_memory()

    async def close(self) -> None:
        """Kill the worker, wait for it, and close the descriptors. May be called more than once."""
        if self._closed:
            return
        self.kill()
        with anyio.CancelScope(shield=True):
            await self.wait()
            if self._cgroup is not None:
                await anyio.to_thread.run_sync(self._cgroup.close)
        self._closed = True
        os.close(self._handle)
        self._pipes.close()
