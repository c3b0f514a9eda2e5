"""A worker process: ``python -m sideband.worker --stdio``, for hosts in any language.

The protocol is JSON, one object a line, at most 16 MiB and 64 levels deep, on standard input and output. Bytes are
``{"__bytes__": BASE64}``. A host says:

- ``{"__type__": "call", "__id__": ID, "__call__": {"module": FILE, "function": NAME, "kwargs": {…}, "working_dir":
  FOLDER, "capabilities": […], "env": {"timezone": …, "locale": …}}}`` to start a call; any number may run at once;
- ``{"__type__": "dispatch_result", "__dispatch_id__": ID, "payload": …}`` to answer an op, or with ``"__error__":
  {"code", "message", "op", "retryable", "hint"}`` (or a text) instead of the payload;
- ``{"__type__": "cancel", "__id__": ID}`` to cancel a call, which still gets its ``result``;
- ``{"__type__": "hello", "version": 1}``, if it wants to know the worker's version and to get ``log`` messages.

A worker says:

- ``{"__type__": "dispatch", "__id__": CALL, "__dispatch_id__": "d-N", "__caps__": […], "__dispatch__": {"op": NAME,
  "params": {…}}}`` when a call wants an op; ``N`` rises. ``__caps__`` repeats what the call was told, no more;
- ``{"__type__": "cancel", "__dispatch_id__": ID}`` when the call does not wait for it any more;
- ``{"__type__": "result", "__id__": ID, …}`` when a call has ended, with the keys of the object that it returned beside
  the protocol's own; anything else, and an object whose only key is ``value``, is wrapped as ``"value"``. A failure is
  ``"__error__": {"code", "message", "traceback", "cause"}``;
- ``{"__type__": "ready", "version": 1, "python": …}`` to ``hello``, then ``{"__type__": "log", "__id__": ID, "stream":
  "stdout", "text": …}`` for each line that a call prints. Without ``hello`` what is printed goes to standard error.

A skill that reports progress dispatches ``progress.report``, which has no answer. The worker ends with its input.

The same file starts sideband's own workers, as a script: it imports nothing but what the interpreter already has until
the lock-down has been applied.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["main"]

_USAGE = """usage: python -m sideband.worker (--stdio | --fd N) [options]

  --stdio           the protocol is on standard input and output
  --fd N            the protocol is on this descriptor, a connected stream socket
  --sdk DIR         the folder that is first on the path: holds the generated SDK
  --packages DIR    the folder that is last on the path: holds what the skill depends on
  --lockdown FILE   run `apply(plan)` of this file before anything else; if it raises, exit with 97
  --plan JSON       the plan for it
  --ceiling SECONDS how long an op may stay unanswered (1800)
"""
_CHANNEL = 3


def main(arguments: "list[str]") -> None:
    """Serve one host, then end the process.

    Args:
        arguments: of the command line, without the program's name.
    """
    options = _parse(arguments)
    read, write = _take_stdio() if "--stdio" in options else _take_descriptor(int(options["--fd"]))
    lockdown = _lock_down(options)
    if "--sdk" in options:
        sys.path.insert(0, options["--sdk"])
    # Only now: an import reads files, and the lock-down decides which may be read.
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
        import json  # noqa: PLC0415  what a plan needs

        path = options["--lockdown"]
        with open(path, "rb") as file:  # noqa: PTH123  pathlib costs more than all the rest
            code = compile(file.read(), path, "exec")
        module: dict[str, Any] = {"__name__": "sideband_lockdown", "__file__": path}
        exec(code, module)  # noqa: S102  the host's own file, named on the host's own command line
        answer: dict[str, Any] = module["apply"](json.loads(options["--plan"]))
    except BaseException as error:  # noqa: BLE001  whatever it was, nothing may run without the lock-down
        _stop(97, f"sideband: the lock-down failed: {type(error).__name__}: {error}\n")
    return answer


def _die_with_parent() -> None:
    """Have the kernel end this process with its host, also when it is stuck in a loop. Linux only."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  not needed elsewhere

        set_parent_death_signal, kill = 1, 9
        ctypes.CDLL(None).prctl(set_parent_death_signal, kill, 0, 0, 0)


def _stop(code: int, text: str) -> None:
    os.write(2, text.encode("utf-8", "backslashreplace"))
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
