"""The host's side of a zygote: starts it, orders workers from it, and learns how they end."""

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

# Without the first, threads of a C library that makes an arena for each would soon fill the address space.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
_START_SECONDS = 20.0
_FORK_SECONDS = 10.0
_END_SECONDS = 5.0
_LONGEST_ANSWER = 4_096
_LAST_WORDS = 500


class Zygote:
    """A zygote that runs. Whoever started it closes it.

    Attributes:
        isolation: the tier of its workers.
        ended: whether it is known to be gone.
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
        """Start one, and wait until it is locked down.

        Args:
            python: the interpreter.
            isolation: the tier of its workers.
            zygote: its own plan.
            worker: that of each of its workers.

        Raises:
            ZygoteFailed: it does not run, or a step of its plan can't be done.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        try:
            process = _start(python, theirs, zygote, worker)
        except OSError as error:
            ours.close()
            raise ZygoteFailed(f"{python} can't be run: {error}") from error
        finally:
            theirs.close()
        started = cls(process, ours, isolation)
        try:
            await started._greet()
        except BaseException:
            await started.close()
            raise
        return started

    async def _greet(self) -> None:
        with anyio.move_on_after(_START_SECONDS) as starting:
            await anyio.wait_readable(self._control)
            if not self._control.recv(_LONGEST_ANSWER):
                raise ZygoteFailed(await self._last_words())
        if starting.cancelled_caught:
            raise ZygoteFailed(f"the zygote was not ready within {_START_SECONDS:g} s")

    async def fork(self, request: LaunchRequest, orders: Mapping[str, Any]) -> ForkedWorker:
        """Make a worker.

        Raises:
            ZygoteFailed: the zygote has ended.
            WorkerStartFailed: the system has no room for another process.
        """
        try:
            pipes = WorkerPipes.open()
        except OSError as error:
            raise WorkerStartFailed(f"no worker could be started: {error}", hint="close other programs") from error
        try:
            # An order that was given has an answer, with a descriptor in it that must not be lost.
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
                raise WorkerStartFailed(f"no worker could be started: {answer['error']}", hint=hint)
            raise ZygoteFailed("the zygote has ended")
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
        """How a worker ended that has ended; as if killed, if the zygote can't tell any more."""
        with anyio.move_on_after(_END_SECONDS):
            await self._read_until(lambda: identifier in self._codes)
        return self._codes.pop(identifier, -signal.SIGKILL)

    async def _read_until(self, found: Callable[[], bool]) -> None:
        """Take answers, whoever they are for, until the one is there, or the zygote is gone."""
        while not found() and not self.ended:
            async with self._reading:
                if not found() and not self.ended:
                    await self._wait_for_answer()
                    self._take()

    async def _wait_for_answer(self) -> None:
        try:
            await anyio.wait_readable(self._control)
        except (anyio.ClosedResourceError, ValueError):
            self.ended = True

    def _take(self) -> None:
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

    async def _last_words(self) -> str:
        """Why it ended, once it has ended before it was ready."""
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe
        code = await wait_for_end(self._process)
        said = self._process.stderr.read(_LONGEST_ANSWER).decode(errors="replace").strip()
        return said[-_LAST_WORDS:] or f"the zygote ended with code {code}"

    def _kill(self) -> None:
        self.ended = True
        self._process.kill()

    async def close(self) -> None:
        """End it, and with it all of its workers that are left. Can be called again."""
        self.ended = True
        anyio.notify_closing(self._control)
        self._control.close()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_END_SECONDS):
                # Whoever waits for it in its namespace ends after it; killed, it would end before.
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
    # In this thread on purpose: the kernel ties the life of a process to the thread that forked it.
    return subprocess.Popen(  # noqa: S603 - the command is ours
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
    """A worker that a zygote has made. A ``WorkerProcess``."""

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
        """Have the kernel hold its limits, if it lets us: the watchdog holds them too."""
        if self.pid:
            with contextlib.suppress(OSError), anyio.CancelScope(shield=True):
                self._cgroup = await anyio.to_thread.run_sync(cgroups.confine, self.pid, limits)

    def kill(self) -> None:
        """End it at once. Harmless if it has ended."""
        if not self._closed:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def usage(self) -> WorkerUsage | None:
        """What it uses now; ``None`` if that can't be seen, or it has ended."""
        if self._closed or not self.pid:
            return None
        try:
            # Its id may belong to somebody else once it has ended; the handle never does.
            signal.pidfd_send_signal(self._handle, 0)
        except OSError:
            return None
        return read_usage(self.pid)

    async def wait(self) -> int:
        """Its exit code; negative for the signal that ended it."""
        if self._code is None:
            await self._wait_for_end()
        async with self._learning:
            if self._code is None:
                self._code = await self._zygote.code_of(self._identifier)
        return self._code

    async def _wait_for_end(self) -> None:
        # One of its own for each who waits: the event loop knows who waits by the number.
        handle = os.dup(self._handle)
        try:
            await anyio.wait_readable(handle)
        finally:
            os.close(handle)

    def was_out_of_memory(self) -> bool:
        """Whether the kernel ended it because it wanted more memory than it may have."""
        return self._cgroup is not None and self._cgroup.was_out_of_memory()

    async def close(self) -> None:
        """Kill it if it still runs, wait for its end, and close the descriptors. Can be called again."""
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
