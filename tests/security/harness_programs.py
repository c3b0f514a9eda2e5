"""A host in a process of its own that runs hostile programs, run by path, so that they do not attack the test run.

Orders are one line of JSON: ``tier``, ``home``, ``area`` (a folder that the host's user may write to), ``attempts``
(name → code). One program run by this interpreter makes each attempt in a child process. Another one, whose grant does
not have ``runs=any``, makes one more attempt. For each attempt the answer
is ``null`` if it succeeded, otherwise the error that stopped it. With ``--as-user ID`` it switches to that user first.
"""

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import sys
import sysconfig
import threading
from pathlib import Path

import anyio

spec = importlib.util.spec_from_file_location("harness_host", Path(__file__).with_name("harness_host.py"))
harness = importlib.util.module_from_spec(spec)
spec.loader.exec_module(harness)

CANARY = "canary-5f0b1c7a9d24"
PYTHON = os.path.realpath(sys.executable)
PROGRAM = """
import ctypes, json, os, signal, socket, sys, traceback
facts, attempts = json.loads(sys.argv[1]), json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def demand(result):
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(5)
        one.connect(address)
def attempt(code):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        # Standard error is the pipe; the child has no other additional descriptor.
        os.dup2(writing, 2)
        os.close(reading)
        os.close(writing)
        try:
            exec(code, globals())
        except SystemExit as error:
            os._exit(error.code)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with open(reading) as stream:
        errors = stream.read()
    status = os.waitpid(pid, 0)[1]
    return None if status == 0 else errors[-500:] or f"status {status}"
print(json.dumps({name: attempt(code) for name, code in attempts.items()}))
"""


@contextlib.contextmanager
def other_threads():
    """Run more threads than a program may have; the kernel counts all threads of a user."""
    done = threading.Event()
    threads = [threading.Thread(target=done.wait) for _ in range(100)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def stage(area):
    """Create files and services to attack. Yield the facts that programs receive."""
    area = Path(area)
    private, place, writable = area / "private", area / "place", area / "writable"
    for folder in (private, place, writable, area / "open"):
        folder.mkdir()
    (private / "secret").write_text(CANARY)
    (place / "known").write_text("known")
    (place / "way-out").symlink_to(private / "secret")
    shutil.copy("/usr/bin/find", area / "lister")
    abstract = f"sideband-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as open_ones:
        served = {}
        for name, family, address in (
            ("tcp", socket.AF_INET, ("127.0.0.1", 0)),
            ("path", socket.AF_UNIX, str(area / "service")),
            ("place", socket.AF_UNIX, str(place / "docker.sock")),
            ("writable", socket.AF_UNIX, str(writable / "agent.sock")),
            ("abstract", socket.AF_UNIX, f"\0{abstract}"),
        ):
            server = open_ones.enter_context(socket.socket(family))
            server.bind(address)
            server.listen()
            served[name] = server.getsockname()
        open_ones.enter_context(other_threads())
        yield {
            "host": os.getpid(),
            "uid": os.getuid(),
            "secret": str(private / "secret"),
            "private": str(private),
            "place": str(place),
            "lister": str(area.resolve() / "lister"),
            "writable": str(writable),
            "open": str(area / "open"),
            "port": served["tcp"][1],
            "service": served["path"],
            "abstract": abstract,
        }


def python_places():
    places = {Path(sysconfig.get_path("stdlib")).resolve(), Path(sys.base_prefix, "lib").resolve()}
    return [str(place) for place in places if not place.is_relative_to("/usr")]


async def serve(orders):
    os.environ["CANARY"] = CANARY
    grants = [f"shell:binary={PYTHON},runs=any,place=*,mode=read|write"]
    with stage(orders["area"]) as facts:
        async with harness.make_host(orders["tier"], home=Path(orders["home"])) as host:
            facts["home"] = str(host.home)
            params = {
                "binary": PYTHON,
                "args": ["-I", "-S", "-B", "-c", PROGRAM, json.dumps(facts), json.dumps(orders["attempts"])],
                "read": [*python_places(), facts["place"]],
                "write": [facts["writable"]],
                "cwd": facts["place"],
                "timeout": 120,
            }
            result = await host.op("shell.run", params, grants=grants)
            lister = facts["lister"]
            params = {"binary": lister, "args": ["/etc/passwd", "-exec", "echo", "ran", ";"]}
            other = await host.op("shell.run", params, grants=[f"shell:binary={lister}"])
    assert result["exit_code"] == 0, result
    outcomes = json.loads(result["stdout"])
    outcomes["run another program without a grant for that"] = None if other["stdout"] else other["stderr"]
    print(json.dumps(outcomes))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-user"]:
        harness.__file__ = __file__
        harness.become(int(sys.argv[2]))
    anyio.run(serve, json.loads(sys.stdin.readline()))
