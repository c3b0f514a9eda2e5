"""A program that imports modules in processes of their own, and says what each import did besides.

It reads one request a line from standard input: a JSON object with ``module`` and ``path``. For each it forks, so that
the host's own modules are imported once. It uses the standard library until then.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

_BASE = ("sideband.host", "sideband.hooks", "sideband.tools", "sideband.providers", "sideband.store", "sideband.blobs")
_BASE_LIGHT = ("sideband.commands", "sideband.command_line", "sideband.loading", "sideband.sandboxing", "sideband.ops")
_WATCHED = {
    "os.exec": "replaces its process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.kill": "sends a signal",
    "os.mkdir": "creates a folder",
    "os.posix_spawn": "starts a process",
    "os.remove": "deletes a file",
    "os.rename": "moves a file",
    "os.rmdir": "deletes a folder",
    "os.system": "starts a process",
    "socket.bind": "binds a socket",
    "socket.connect": "connects a socket",
    "socket.getaddrinfo": "resolves a name",
    "subprocess.Popen": "starts a process",
    "tempfile.mkdtemp": "creates a temporary folder",
    "tempfile.mkstemp": "creates a temporary file",
}


def _threads() -> set[str]:
    return {one.name for one in threading.enumerate()}


def _descriptors() -> set[str]:
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    found = set()
    for name in os.listdir(folder):  # noqa: PTH208  pathlib is not imported before it is measured
        try:
            found.add(f"{name}: {os.readlink(f'{folder}/{name}')}" if sys.platform == "linux" else name)  # noqa: PTH115
        except OSError:
            continue  # that of the listing
    return found


def _handlers() -> dict[str, str]:
    return {one.name: repr(signal.getsignal(one)) for one in signal.valid_signals() if isinstance(one, signal.Signals)}


def _state() -> dict[str, Any]:
    umask = os.umask(0o22)
    os.umask(umask)
    return {
        "environment": dict(os.environ),
        "signal handlers": _handlers(),
        "working directory": os.getcwd(),  # noqa: PTH109
        "umask": umask,
        "threads": _threads(),
        "open descriptors": _descriptors(),
        "import path": list(sys.path),
        "hook of exceptions": repr(sys.excepthook),
    }


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    found = []
    for name, old in before.items():
        new = after[name]
        if new == old:
            continue
        if isinstance(old, dict):
            keys = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
            found.append(f"it changes the {name}: {', '.join(keys)}")
        elif isinstance(old, set):
            found.append(f"it leaves {name}: {', '.join(sorted(new - old)) or 'fewer than before'}")
        else:
            found.append(f"it changes the {name}")
    return found


def _writes(path: object, _mode: object, flags: object) -> bool:
    writing = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    return bool(writing) and isinstance(path, str) and path != os.devnull


def _measure(module: str, path: list[str]) -> dict[str, Any]:
    sys.path[:] = path
    acts: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if not watching:
            return
        if event in _WATCHED:
            acts.append(f"it {_WATCHED[event]}: {' '.join(map(str, arguments))[:200]}")
        elif event == "open" and _writes(*arguments):
            acts.append(f"it writes a file: {arguments[0]}")

    known = set(sys.modules)
    before = _state()
    sys.addaudithook(watch)
    error = ""
    try:
        __import__(module)
    except BaseException as raised:  # noqa: BLE001  whatever the import raises is reported
        error = f"{type(raised).__name__}: {raised}"
    watching = False
    acts += _differences(before, _state())
    return {"acts": list(dict.fromkeys(acts)), "modules": sorted(set(sys.modules) - known), "error": error}


def _answer(request: dict[str, Any], channel: int) -> None:
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115  what the module prints is not an answer
    found = json.dumps(_measure(request["module"], request["path"])).encode()
    while found:
        found = found[os.write(channel, found) :]


def main() -> None:
    """Answer requests until standard input ends."""
    sys.dont_write_bytecode = True
    for module in (*_BASE, *_BASE_LIGHT):
        __import__(module)
    from sideband.ops import OpParams  # noqa: PLC0415  what each model imports when it is built does not count for a plugin

    type("Params", (OpParams,), {})()
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                _answer(json.loads(line), writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answer:
            found = answer.read()
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        print(found.decode() or json.dumps({"acts": [], "modules": [], "error": f"it ended the process ({ended})"}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
