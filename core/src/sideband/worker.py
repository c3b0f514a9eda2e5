"""A worker process for hosts in any language: ``python -m sideband.worker --stdio``.

The protocol is JSON on standard input and output: one object per line, of at most 16 MiB and 64 levels. Bytes are
encoded as ``{"__bytes__": BASE64}``. A host sends:

- ``{"__type__": "call", "__id__": ID, "__call__": {"module": FILE, "function": NAME, "kwargs": {…}, "working_dir":
  FOLDER, "capabilities": […], "env": {"timezone": …, "locale": …}}}`` to start a call. Any number of calls may run
  concurrently. ``env`` may have the ``started`` time (ISO 8601) and the ``seed`` of the call, for the values that are
  the same when an interrupted call runs again. With ``"begin_by": TIME`` in ``__call__``, the worker sends ``begun``
  before it runs the function, or ``late`` instead of running it after that time on the monotonic clock;
- ``{"__type__": "ping", "number": N}``, which the event loop answers with ``{"__type__": "pong", "number": N}``;
- ``{"__type__": "dispatch_result", "__dispatch_id__": ID, "payload": …}`` to answer an op. A failure has
  ``"__error__": {"code", "message", "op", "retryable", "hint", "details"}`` (or a string) instead of ``payload``;
- ``{"__type__": "cancel", "__id__": ID}`` to cancel a call. The worker still sends its ``result``;
- ``{"__type__": "hello", "version": 1}`` to request the worker's version and to receive ``log`` messages.

A worker sends:

- ``{"__type__": "dispatch", "__id__": CALL, "__dispatch_id__": "d-N", "__caps__": […], "__dispatch__": {"op": NAME,
  "params": {…}}}`` when a call requests an op. ``N`` increases. ``__caps__`` repeats the ``capabilities`` of the call;
- ``{"__type__": "cancel", "__dispatch_id__": ID}`` when the call no longer waits for the op;
- ``{"__type__": "result", "__id__": ID, …}`` when a call has ended. If it returned an object, the keys of the object
  are beside the keys of the protocol. Any other value, and an object whose only key is ``value``, is wrapped as
  ``"value"``. A failure is ``"__error__": {"code", "message", "traceback", "cause", "topic"}``, all but the code
  optional. ``topic`` is set if the skill needs what a worker does not have, such as ``network``;
- ``{"__type__": "ready", "version": 1, "python": …}`` in reply to ``hello``, then ``{"__type__": "log", "__id__": ID,
  "stream": "stdout", "text": …}`` for each line that a call prints. Without ``hello``, printed lines go to standard
  error.

A skill reports progress by dispatching ``progress.report``, which has no answer. The worker exits when its input ends.

Sideband's own workers run this file as a script. It imports only modules that the interpreter has already loaded until
the lockdown is applied.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["main"]

_USAGE = """usage: python -m sideband.worker (--stdio | --fd N) [options]

  --stdio           use standard input and output for the protocol
  --fd N            use this descriptor, a connected stream socket, for the protocol
  --sdk DIR         prepend this folder, which holds the generated SDK, to the import path
  --packages DIR    append this folder, which holds the dependencies of the skill, to the import path
  --lockdown FILE   run `apply(plan)` of this file before anything else; if it raises, exit with code 97
  --plan JSON       the plan that is passed to `apply`
  --ceiling SECONDS maximum time to wait for the answer to an op (default: 1800)
"""
_CHANNEL = 3


def main(arguments: "list[str]") -> None:
    """Serve one host, then end the process.

    Args:
        arguments: the command-line arguments without the program's name.
    """
    options = _parse(arguments)
    read, write = _take_stdio() if "--stdio" in options else _take_descriptor(int(options["--fd"]))
    lockdown = _lock_down(options)
    if "--sdk" in options:
        sys.path.insert(0, options["--sdk"])
    # Import after the lockdown: an import reads files, and the lockdown decides which files are readable.
    from sideband.workers.runtime import serve  # noqa: PLC0415

    serve(
        read,
        write,
        lockdown=lockdown,
        packages=options.get("--packages", ""),
        ceiling=float(options.get("--ceiling", "1800")),
    )


def _parse(arguments: "list[str]") -> "dict[str, str]":
    known = {"--fd", "--sdk", "--packages", "--lockdown", "--plan", "--ceiling"}
    options: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name = rest.pop(0)
        if name == "--stdio":
            options[name] = ""
        elif name in known and rest:
            options[name] = rest.pop(0)
        else:
            _stop(2, _USAGE)
    if ("--stdio" in options) == ("--fd" in options) or ("--lockdown" in options) != ("--plan" in options):
        _stop(2, _USAGE)
    return options


def _take_stdio() -> "tuple[int, int]":
    read, write = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return read, write


def _take_descriptor(descriptor: int) -> "tuple[int, int]":
    if descriptor != _CHANNEL:
        os.dup2(descriptor, _CHANNEL, inheritable=False)
        os.close(descriptor)
    return _CHANNEL, _CHANNEL


def _lock_down(options: "Mapping[str, str]") -> "dict[str, Any] | None":
    if "--lockdown" not in options:
        if "--fd" in options:
            _die_with_parent()
        return None
    try:
        import json  # noqa: PLC0415  only needed for a plan

        path = options["--lockdown"]
        with open(path, "rb") as file:  # noqa: PTH123  importing pathlib costs more than everything else here
            code = compile(file.read(), path, "exec")
        module: dict[str, Any] = {"__name__": "sideband_lockdown", "__file__": path}
        exec(code, module)  # noqa: S102  the host's own file, named on the host's own command line
        answer: dict[str, Any] = module["apply"](json.loads(options["--plan"]))
    except BaseException as error:  # noqa: BLE001  nothing may run without the lockdown
        _stop(97, f"sideband: lockdown failed: {type(error).__name__}: {error}\n")
    return answer


def _die_with_parent() -> None:
    """Make the kernel kill this process when its host exits, even if it is in a busy loop. Linux only."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  only needed on Linux

        set_parent_death_signal, kill = 1, 9
        ctypes.CDLL(None).prctl(set_parent_death_signal, kill, 0, 0, 0)


def _stop(code: int, text: str) -> None:
    os.write(2, text.encode("utf-8", "backslashreplace"))
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
