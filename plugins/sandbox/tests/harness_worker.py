"""A worker for tests, run by path: reads its orders, locks itself down, runs snippets and reports their outcomes.

Orders are one line of JSON: ``lockdown`` (file), ``plan``, ``before`` (code to run first), ``snippets`` (name → code),
``facts`` (names visible to snippets). A snippet that raises was stopped. With ``wait`` the worker runs until its input
is closed. A plan has ``steps``; or ``zygote`` and ``worker``, with a fork between them.
"""

import ctypes
import importlib.util
import json
import os
import sys

orders = json.loads(sys.stdin.readline())
spec = importlib.util.spec_from_file_location("lockdown", orders["lockdown"])
lockdown = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lockdown)
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def demand(result):
    """Raise ``OSError`` if a C function failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def reap(pid):
    """Exit at once in the child; reap it in the parent."""
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


scope = {**orders["facts"], "demand": demand, "libc": libc, "os": os, "ctypes": ctypes, "reap": reap}
exec(orders["before"], scope)


def lock_down(plan):
    try:
        lockdown.apply(plan)
    except BaseException as error:  # noqa: BLE001 - like the real zygote: nothing may run without the lockdown
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(lockdown.EXIT_CODE)


plan = orders["plan"]
if "zygote" in plan:
    lock_down(plan["zygote"])
    zygote = os.getpid()
    child = os.fork()
    if child:
        os.close(0)
        os.close(1)
        status = os.waitpid(child, 0)[1]
        os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
    for name, arguments in plan["worker"]["steps"]:
        if name == "parent":
            arguments["pid"] = zygote
    plan = plan["worker"]
lock_down(plan)
report = {}
for name, code in orders["snippets"].items():
    try:
        exec(code, dict(scope))
    except BaseException as error:  # noqa: BLE001 - any error is a result
        report[name] = f"{type(error).__name__}: {error}"
    else:
        report[name] = None
sys.stdout.write(json.dumps(report) + "\n")
sys.stdout.flush()
if orders["wait"]:
    sys.stdin.read()
