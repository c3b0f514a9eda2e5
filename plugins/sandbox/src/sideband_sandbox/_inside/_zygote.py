"""The zygote: a process that is locked down before any skill is loaded, and forks each worker.

Runs by path with ``-I -S`` and the standard library only. It never reads a file of a skill and never receives a
secret, because every worker inherits a copy of its memory. It exits with the host, and kills all workers.

The host sends JSON messages on descriptor 3. An order ``{"id", "steps", "sdk", "packages", "environment"}`` carries
three descriptors: the protocol's, standard output and standard error. The answer is ``{"id", "forked": true}`` with a
pidfd of the new process, or ``{"id", "error"}``. ``{"id", "ended": CODE}`` follows when the worker has exited.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_CONTROL = 3
_LONGEST_ORDER = 65_536


def main(arguments: list[str]) -> None:
    """Lock down, and serve the host until it exits.

    Args:
        arguments: the number of the descriptor to the host, and as JSON: ``lockdown`` (the path of the lockdown),
            ``workers`` (the folder of the runtime's package), ``zygote`` (the plan for this process), ``worker`` (the
            plan for each worker; an order adds arguments to its steps).
    """
    os.dup2(int(arguments[0]), _CONTROL)
    options = json.loads(arguments[1])
    lockdown = _load_lockdown(options["lockdown"])
    _preload(options["workers"])
    try:
        lockdown.apply(options["zygote"])
    except OSError as error:
        _stop(lockdown.EXIT_CODE, f"{error}\n")
    sys.argv[1:] = []
    # Freeze existing objects: their memory pages stay shared with the workers unless the collector writes to them.
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=_CONTROL)
    control.send(b'{"ready": true}')
    _Zygote(control, lockdown, options["worker"]).serve()


def _load_lockdown(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("sideband_lockdown", path)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a path with .py has a loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _preload(workers: str) -> None:
    """Import the runtime from the host's copy; the copies in the skills' SDKs are identical but not available yet."""
    for name, folders in (("sideband", []), ("sideband.workers", [workers])):
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = folders
        sys.modules[name] = importlib.util.module_from_spec(spec)
    importlib.import_module("sideband.workers.runtime")


class _Zygote:
    """The event loop: forks a worker for each order, and reports its start and exit."""

    def __init__(self, control: socket.socket, lockdown: ModuleType, plan: dict[str, Any]) -> None:
        self._control = control
        self._lockdown = lockdown
        self._plan = plan
        self._pid = os.getpid()
        self._workers: dict[int, tuple[int, int]] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Serve orders until the host exits."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == _CONTROL:
                    self._take_order()
                else:
                    self._reap(descriptor)

    def _take_order(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._control, _LONGEST_ORDER, 3, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._end()
        order = json.loads(message)
        try:
            pid = os.fork()
        except OSError as error:
            self._answer({"id": order["id"], "error": str(error)})
        else:
            if pid == 0:
                self._become_worker(order, descriptors)
            handle = os.pidfd_open(pid)
            self._workers[handle] = pid, order["id"]
            self._poll.register(handle, select.POLLIN)
            self._answer({"id": order["id"], "forked": True}, [handle])
        for descriptor in descriptors:
            os.close(descriptor)

    def _reap(self, handle: int) -> None:
        pid, identifier = self._workers.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        status = os.waitpid(pid, 0)[1]
        self._answer({"id": identifier, "ended": os.waitstatus_to_exitcode(status)})

    def _answer(self, message: dict[str, Any], descriptors: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], descriptors or [])
        except OSError:
            self._end()

    def _end(self) -> None:
        """Kill all workers and exit, because the host has exited. In a process namespace the kernel kills them too."""
        for handle in self._workers:
            try:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            except OSError:
                continue
        os._exit(0)

    def _become_worker(self, order: dict[str, Any], descriptors: list[int]) -> None:
        """Run a worker in the forked process. Never returns."""
        try:
            for target, descriptor in zip((_CONTROL, 1, 2), descriptors, strict=True):
                os.dup2(descriptor, target)
            os.setsid()
            lockdown = self._lockdown.apply(self._plan, {**order["steps"], "parent": {"pid": self._pid}})
            _enter(order["sdk"], order["environment"])
        except BaseException as error:  # noqa: BLE001 - nothing may run without the lockdown
            _stop(self._lockdown.EXIT_CODE, f"sideband: the lockdown failed: {type(error).__name__}: {error}\n")
        from sideband.workers.runtime import serve  # noqa: PLC0415 - available only after `_preload`

        try:
            serve(_CONTROL, _CONTROL, lockdown=lockdown, packages=order["packages"])
        except BaseException:  # noqa: BLE001 - this process must not continue as a zygote
            _stop(1, traceback.format_exc())


def _enter(sdk: str, environment: dict[str, str]) -> None:
    """Set the worker's environment, and make its SDK importable."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.path.insert(0, sdk)
    sys.modules["sideband"].__path__ = [f"{sdk}/sideband"]
    sys.modules["sideband.workers"].__path__ = [f"{sdk}/sideband/workers"]


def _stop(code: int, text: str) -> None:
    os.write(2, text.encode("utf-8", "backslashreplace"))
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
