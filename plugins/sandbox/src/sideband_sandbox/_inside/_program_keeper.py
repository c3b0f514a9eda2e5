"""Starts one command inside its walls, and ends with all that it has started. Runs by path with ``-I -S``.

Three processes, the first two of which are this file:

    keeper   a child of the host; waits, and holds nothing but that
    first    process 1 of the command's namespaces: makes its file system, reaps, reports, and ends when that ends
    command

When the first process ends, in whatever way, the kernel ends all others of its process namespace. Where there are no
namespaces the keeper does its work: every process that a command leaves behind becomes the keeper's child, and the
keeper ends them one by one.

Messages of JSON pass on descriptor 3. To the host: ``{"keeper": {}}`` with a descriptor of the first process;
``{"started": true}`` with one of the command, after the host's ``{"confined": …}``; ``{"ended": CODE}``; or
``{"failed": WHY, "step": NAME, "errno": NUMBER}``.
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
    """Run a command to its end.

    Args:
        arguments: the numbers of two descriptors: to the host, and of a file with the plan as JSON; then the paths of
            ``_lockdown.py`` and ``_program_root.py``.
    """
    os.dup2(int(arguments[0]), _CONTROL)
    with open(int(arguments[1]), encoding="utf-8") as stream:  # noqa: PTH123 - it is a descriptor
        plan = json.load(stream)
    kernel, root = (_load(path) for path in arguments[2:])
    control = socket.socket(fileno=_CONTROL)
    try:
        kernel.apply({"steps": [["descriptors", {}], ["single_thread", {}]]})
        _Program(plan, kernel, root, control).keep()
    except BaseException as error:  # noqa: BLE001 - nothing may run without the lock-down
        _fail(control, error, kernel.EXIT_CODE)


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)  # noqa: PTH119 - one import less
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a path with .py has a loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _HostGone(BaseException):
    """Who started the keeper has ended."""


class _Program:
    """One command, from its plan to its end."""

    def __init__(self, plan: dict[str, Any], kernel: Any, root: Any, control: socket.socket) -> None:
        self._plan = plan
        self._kernel = kernel
        self._root = root
        self._control = control
        self._uid: int | None = plan["identity"]
        self._confined = False

    def keep(self) -> None:
        """Be the keeper."""
        ids = self._identity()
        if self._plan["namespaces"]:
            self._keep_namespaces(ids)
        else:
            self._keep_processes()

    def _identity(self) -> int | None:
        """How the user's files become the command's, if it gets a user id of its own and that needs it."""
        if self._uid is None:
            return None
        ids = self._root.mapping(self._kernel, self._uid) if self._plan["maps_ids"] else None
        for descriptor in (0, 1, 2):
            # Else it could not open /dev/stdout and its like, which name what is open already.
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
            self._be_first(reading, ids)
        self._say({"keeper": {}}, [os.pidfd_open(first)])
        os.closerange(0, writing)
        self._drop(_CAP_KILL)  # the kernel ends the first process with this one only if this one may kill it
        status = os.waitpid(first, 0)[1]
        os._exit(0 if os.WIFEXITED(status) else self._kernel.EXIT_CODE)

    def _be_first(self, lifeline: int, ids: int | None) -> NoReturn:
        try:
            self._kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            _look_after(lifeline)
            # The command must not look into this process, nor trace it.
            self._kernel.prctl(_PR_SET_DUMPABLE, 0)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._root.build(self._kernel, self._plan["root"], ids)
            if ids is not None:
                os.close(ids)
            self._run()
        except BaseException as error:  # noqa: BLE001 - nothing may run without the lock-down
            _fail(self._control, error, self._kernel.EXIT_CODE)
        os._exit(0)

    def _keep_processes(self) -> None:
        """Do what the first process of a process namespace would do."""
        signal.signal(signal.SIGTERM, _host_gone)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._kernel.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self._plan["host"]:
            raise OSError("the host has ended already")
        self._kernel.prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._kernel.prctl(_PR_SET_DUMPABLE, 0)
        self._say({"keeper": {}}, [os.pidfd_open(os.getpid())])
        try:
            code = self._run(report=False)
        except _HostGone:
            code = -signal.SIGKILL
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._end_all()
        self._say({"ended": code})
        os._exit(0)

    def _run(self, *, report: bool = True) -> int:
        """Start the command, and stay until it has ended. Returns how."""
        self._await_go()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._become_program(writing)
        os.close(writing)
        handle = os.pidfd_open(pid)
        os.closerange(0, _CONTROL)
        self._drop(_CAP_KILL, *(() if self._plan["namespaces"] else (_CAP_SETUID, _CAP_SETGID)))
        self._kernel.apply({"steps": [["no_new_privileges", {}]]})
        problem = _read_all(reading)
        os.close(reading)
        if problem:
            self._control.send(problem)
            os.waitpid(pid, 0)
            os._exit(self._kernel.EXIT_CODE)
        self._say({"started": True}, [handle])
        code = self._wait_for(pid, handle)
        if report:
            self._say({"ended": code})
        return code

    def _await_go(self) -> None:
        message = self._control.recv(_LONGEST_MESSAGE)
        if not message:
            raise OSError("the host has ended already")
        self._confined = json.loads(message)["confined"]

    def _become_program(self, problems: int) -> NoReturn:
        step = "prepare"
        try:
            _default_signals()
            os.setsid()
            for step, act in self._steps():  # noqa: B007 - it tells which one failed
                act()
            step = "run"
            os.closerange(_CONTROL, problems)
            os.closerange(problems + 1, os.sysconf("SC_OPEN_MAX"))
            arguments = self._plan["arguments"]
            os.execve(arguments[0], arguments, self._plan["environment"])  # noqa: S606 - it is what was asked for
        except BaseException as error:  # noqa: BLE001 - nothing may run without the lock-down
            os.write(problems, _problem(error, step))
            os._exit(self._kernel.EXIT_CODE)

    def _steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """The walls, in the only order in which they hold; some need what another one takes away."""
        yield "limits", self._limit
        yield self._step("bounding_set")
        if self._uid is not None:
            yield self._step("identity", uid=self._uid)
        yield self._step("parent", pid=os.getppid())
        yield self._step("capabilities")
        yield self._step("no_new_privileges")
        yield "folder", self._enter
        yield "landlock", self._restrict
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
        """Landlock, with what its rules are for found without following a link."""
        own = [[rights, self._root.open_exactly(self._kernel, path), []] for rights, path in self._plan["rules"]]
        self._kernel.apply({"steps": [["landlock", {**self._plan["landlock"], "own": own}]]})

    def _wait_for(self, pid: int, handle: int) -> int:
        """How the command ended; reaps whatever else ends meanwhile."""
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while True:
            events = dict(poll.poll(_TICK_MILLISECONDS))
            for ended, status in _reaped():
                if ended == pid:
                    return os.waitstatus_to_exitcode(status)
            if _CONTROL in events:
                raise _HostGone
            if not self._confined and self._uses_too_much():
                self._say({"over": True})
                raise _HostGone

    def _uses_too_much(self) -> bool:
        """Whether all processes together have more memory than one may: where the kernel does not count it."""
        pids = _every_process() if self._plan["namespaces"] else _descendants(os.getpid())
        return bool(sum(map(_resident, pids)) > self._plan["memory"])

    def _end_all(self) -> None:
        """End every process that is left."""
        while True:
            if self._uid is not None:
                self._end_user()
            for pid in _descendants(os.getpid()):
                _end_process(pid)
            list(_reaped())
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            select.select([], [], [], _KILL_PAUSE_MILLISECONDS / 1000)

    def _end_user(self) -> None:
        """End all that the command's own user runs, at one stroke: none of it can fork in between."""
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

    def _say(self, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
        # If the host is gone, the next look at its end of the socket tells.
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [json.dumps(message).encode()], descriptors or [])


def _look_after(lifeline: int) -> None:
    """Make sure that the other end still lives."""
    if select.select([lifeline], [], [], 0)[0]:
        raise OSError("the host has ended already")
    os.close(lifeline)


def _host_gone(*_: object) -> None:
    raise _HostGone


def _default_signals() -> None:
    """Those that an interpreter or a host ignores, a program would go on ignoring."""
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _reaped() -> Iterator[tuple[int, int]]:
    """Each child that has ended, with its status."""
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
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208 - one import less
    except OSError:
        return []


def _descendants(root: int) -> list[int]:
    """All processes that a process has started, directly or not."""
    children: dict[int, list[int]] = {}
    for pid in _every_process():
        try:
            with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123 - one import less
                status = stream.read()
        except OSError:
            continue
        # The name may hold anything, parentheses too; the last one ends it.
        parent = int(status[status.rindex(b")") + 2 :].split()[1])
        children.setdefault(parent, []).append(pid)
    found, waiting = [], [root]
    while waiting:
        of_one = children.get(waiting.pop(), [])
        found += of_one
        waiting += of_one
    return found


def _end_process(pid: int) -> None:
    with contextlib.suppress(OSError):
        # What is being forked this very moment gets the limit too, and can't fork on.
        resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def _resident(pid: int) -> int:
    """Bytes that a process has for itself, as far as that is cheap to know."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as stream:  # noqa: PTH123 - one import less
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
