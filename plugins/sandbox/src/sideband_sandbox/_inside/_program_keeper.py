"""Supervises one isolated program, and kills all of its descendants when it exits. Runs by path with ``-I -S``.

There are three processes; the first two run this file:

    keeper   a child of the host that waits for the init process
    init     process 1 of the program's namespaces: builds its file system, reaps, reports, and exits after it
    program

When the init process exits for any reason, the kernel kills all other processes in its process namespace. Without
namespaces the keeper does this: it is the subreaper of the program's orphans, and kills them one by one.

JSON messages are sent on descriptor 3. To the host: ``{"keeper": {}}`` with a pidfd of the init process;
``{"started": true}`` with a pidfd of the program, after the host's ``{"confined": …}``; ``{"ended": CODE}``; or
``{"failed": MESSAGE, "step": NAME, "errno": NUMBER}``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NoReturn

_CONTROL = 3
_LONGEST_MESSAGE = 4_096
_LONGEST_PROBLEM = 500
_TICK_MILLISECONDS = 100
_KILL_PAUSE_MILLISECONDS = 5
_PAGE = os.sysconf("SC_PAGE_SIZE")

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_CAP_KILL, _CAP_SETGID, _CAP_SETUID = 5, 6, 7
_HOST_NAME = b"command"


def main(arguments: list[str]) -> None:
    """Run a program until it exits.

    Args:
        arguments: the numbers of two descriptors, the socket to the host and a file with the plan as JSON; then the
            paths of ``_lockdown.py``, ``_program_root.py`` and ``_program_execution.py``.
    """
    os.dup2(int(arguments[0]), _CONTROL)
    with open(int(arguments[1]), encoding="utf-8") as stream:  # noqa: PTH123 - it is a descriptor
        plan = json.load(stream)
    kernel, root, execution = (_load(path) for path in arguments[2:])
    control = socket.socket(fileno=_CONTROL)
    try:
        kernel.apply({"steps": [["descriptors", {}], ["single_thread", {}]]})
        _Program(plan, kernel, root, execution, control).keep()
    except BaseException as error:  # noqa: BLE001 - nothing may run without the lockdown
        _fail(control, error, kernel.EXIT_CODE)


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)  # noqa: PTH119 - avoids an import
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a path with .py has a loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Stopped(BaseException):
    """The host has exited or requested the end of the program, or the program exceeds its memory limit."""


class _Program:
    """One program, from its plan to its exit."""

    def __init__(self, plan: dict[str, Any], kernel: Any, root: Any, execution: Any, control: socket.socket) -> None:
        self._plan = plan
        self._kernel = kernel
        self._root = root
        self._execution = execution
        self._control = control
        self._uid: int | None = plan["identity"]
        self._confined = False

    def keep(self) -> None:
        """Run the keeper process."""
        ids = self._identity()
        if self._plan["namespaces"]:
            self._keep_namespaces(ids)
        else:
            self._keep_processes()

    def _identity(self) -> int | None:
        """Prepare the program's own user, if it has one. Return the descriptor of the ID mapping, if it needs one."""
        if self._uid is None:
            return None
        ids = self._root.mapping(self._kernel, self._uid) if self._plan["maps_ids"] else None
        for descriptor in (0, 1, 2):
            # Otherwise the program could not reopen its streams through /dev/stdin, /dev/stdout and /dev/stderr.
            os.fchown(descriptor, self._uid, self._uid)
        return ids

    def _keep_namespaces(self, ids: int | None) -> None:
        self._kernel.unshare(self._plan["namespaces"], with_user=self._plan["with_user"])
        self._kernel.name_machine(_HOST_NAME)
        self._kernel.apply({"steps": [["parent", {"pid": self._plan["host"]}]]})
        reading, writing = os.pipe()
        first = os.fork()
        if first == 0:
            os.close(writing)
            self._run_init(reading, ids)
        self._send({"keeper": {}}, [os.pidfd_open(first)])
        os.closerange(0, writing)
        self._drop(_CAP_KILL)  # the kernel sends the init process PDEATHSIG only if this process may kill it
        status = os.waitpid(first, 0)[1]
        os._exit(0 if os.WIFEXITED(status) else self._kernel.EXIT_CODE)

    def _run_init(self, lifeline: int, ids: int | None) -> NoReturn:
        try:
            self._kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _check_parent(lifeline)
            # The program must not inspect or trace this process.
            self._kernel.prctl(_PR_SET_DUMPABLE, 0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._root.build(self._kernel, self._plan["root"], ids)
            if ids is not None:
                os.close(ids)
            self._run()
        except BaseException as error:  # noqa: BLE001 - nothing may run without the lockdown
            _fail(self._control, error, self._kernel.EXIT_CODE)
        os._exit(0)

    def _keep_processes(self) -> None:
        """Supervise the program without a process namespace."""
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self._plan["host"]:
            raise OSError("the host has already exited")
        self._kernel.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._kernel.prctl(_PR_SET_DUMPABLE, 0)
        self._send({"keeper": {}}, [os.pidfd_open(os.getpid())])
        try:
            code = self._run(report=False)
        except _Stopped:
            code = -signal.SIGKILL
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._kill_all()
        self._send({"ended": code})
        os._exit(0)

    def _run(self, *, report: bool = True) -> int:
        """Start the program, and wait for it. Return its exit code."""
        self._await_host()
        reading, writing = os.pipe()
        child, parent = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._become_program(writing, parent)
        os.close(writing)
        parent.close()
        handle = os.pidfd_open(pid)
        os.closerange(0, _CONTROL)
        self._drop(_CAP_KILL, *(() if self._plan["namespaces"] else (_CAP_SETUID, _CAP_SETGID)))
        self._kernel.apply({"steps": [["no_new_privileges", {}]]})
        self._execution.let_first_continue(child)
        child.close()
        problem = _read_all(reading)
        os.close(reading)
        if problem:
            self._control.send(problem)
            os.waitpid(pid, 0)
            os._exit(self._kernel.EXIT_CODE)
        self._send({"started": True}, [handle])
        code = self._wait_for(pid, handle)
        if report:
            self._send({"ended": code})
        return code

    def _await_host(self) -> None:
        message = self._control.recv(_LONGEST_MESSAGE)
        if not message:
            raise OSError("the host has already exited")
        self._confined = json.loads(message)["confined"]

    def _become_program(self, problems: int, parent: socket.socket) -> NoReturn:
        step = "prepare"
        try:
            _default_signals()
            os.setsid()
            for step, act in self._steps(parent):  # noqa: B007 - the handler reports the failed step
                act()
            step = "run"
            os.closerange(_CONTROL, problems)
            os.closerange(problems + 1, os.sysconf("SC_OPEN_MAX"))
            arguments = self._plan["arguments"]
            os.execve(arguments[0], arguments, self._plan["environment"])  # noqa: S606 - the requested program
        except BaseException as error:  # noqa: BLE001 - nothing may run without the lockdown
            os.write(problems, _problem(error, step))
            os._exit(self._kernel.EXIT_CODE)

    def _steps(self, parent: socket.socket) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield the steps of the isolation. Their order matters: some need privileges that later ones drop."""
        yield "limits", self._limit
        yield self._step("bounding_set")
        if self._uid is not None:
            yield self._step("identity", uid=self._uid)
        yield self._step("parent", pid=os.getppid())
        yield self._step("capabilities")
        yield self._step("no_new_privileges")
        yield "folder", self._enter
        yield "landlock", self._restrict
        if self._plan["execution"] is not None:
            yield "execution", lambda: self._execution.suspend(self._kernel, **self._plan["execution"], parent=parent)
        yield self._step("seccomp", **self._plan["seccomp"])

    def _step(self, name: str, **arguments: Any) -> tuple[str, Callable[[], object]]:
        return name, lambda: self._kernel.apply({"steps": [[name, arguments]]})

    def _limit(self) -> None:
        for name, value in self._plan["limits"].items():
            kind = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(kind)[1]
            allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (allowed, allowed))

    def _enter(self) -> None:
        folder = self._root.open_exactly(self._kernel, self._plan["folder"])
        os.fchdir(folder)
        os.close(folder)

    def _restrict(self) -> None:
        """Apply Landlock. The paths of its rules are opened without following symbolic links."""
        own = [[rights, self._root.open_exactly(self._kernel, path), []] for rights, path in self._plan["rules"]]
        self._kernel.apply({"steps": [["landlock", {**self._plan["landlock"], "own": own}]]})

    def _wait_for(self, pid: int, handle: int) -> int:
        """Wait for the program, and reap other children. Return the program's exit code."""
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while True:
            events = dict(poll.poll(_TICK_MILLISECONDS))
            for ended, status in _reaped():
                if ended == pid:
                    return os.waitstatus_to_exitcode(status)
            if _CONTROL in events:
                raise _Stopped
            if not self._confined and self._exceeds_memory():
                self._send({"over": True})
                raise _Stopped

    def _exceeds_memory(self) -> bool:
        """Return whether all processes together exceed the memory limit. Used where no control group enforces it."""
        pids = _every_process() if self._plan["namespaces"] else _descendants(os.getpid())
        return bool(sum(map(_resident, pids)) > self._plan["memory"])

    def _kill_all(self) -> None:
        """Kill all remaining descendants."""
        while True:
            if self._uid is not None:
                self._kill_user()
            for pid in _descendants(os.getpid()):
                _kill_process(pid)
            list(_reaped())
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            select.select([], [], [], _KILL_PAUSE_MILLISECONDS / 1000)

    def _kill_user(self) -> None:
        """Kill all processes of the program's own user in one system call, so that none can fork in between."""
        pid = os.fork()
        if pid == 0:
            try:
                self._kernel.apply({"steps": [["identity", {"uid": self._uid}]]})
                os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    def _drop(self, *kept: int) -> None:
        self._kernel.apply({"steps": [["capabilities", {"kept": sum(1 << number for number in kept)}]]})

    def _send(self, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
        # If the host has exited, the next poll of the socket detects it.
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [json.dumps(message).encode()], descriptors or [])


def _check_parent(lifeline: int) -> None:
    """Raise ``OSError`` if the process at the other end of the pipe has exited."""
    if select.select([lifeline], [], [], 0)[0]:
        raise OSError("the host has already exited")
    os.close(lifeline)


def _stop(*_: object) -> None:
    raise _Stopped


def _default_signals() -> None:
    """Restore default signal handling: the program would inherit signals ignored by the interpreter or the host."""
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _reaped() -> Iterator[tuple[int, int]]:
    """Reap exited children. Yield the process ID and status of each."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        yield pid, status


def _every_process() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - avoids an import
    except OSError:
        return []


def _descendants(root: int) -> list[int]:
    """Return all direct and indirect children of a process."""
    children: dict[int, list[int]] = {}
    for pid in _every_process():
        try:
            with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123 - avoids an import
                status = stream.read()
        except OSError:
            continue
        # The process name may contain parentheses; the last one ends it.
        parent = int(status[status.rindex(b")") + 2 :].split()[1])
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        of_one = children.get(waiting.pop(), [])
        found += of_one
        waiting += of_one
    return found


def _kill_process(pid: int) -> None:
    with contextlib.suppress(OSError):
        # A child being forked right now inherits the limit and cannot fork again.
        resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _resident(pid: int) -> int:
    """Return the resident bytes that a process does not share, as estimated by ``statm``."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:  # noqa: PTH123 - avoids an import
            words = stream.read().split()
    except OSError:
        return 0
    return (int(words[1]) - int(words[2])) * _PAGE


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, _LONGEST_MESSAGE):
        parts.append(part)
    return b"".join(parts)


def _problem(error: BaseException, step: str) -> bytes:
    message = {
        "failed": f"{type(error).__name__}: {error}"[:1000],
        "step": step,
        "errno": getattr(error, "errno", None),
    }
    return json.dumps(message).encode()


def _fail(control: socket.socket, error: BaseException, code: int) -> NoReturn:
    with contextlib.suppress(OSError):
        control.send(_problem(error, "prepare"))
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
