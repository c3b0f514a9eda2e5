"""A host in a process of its own that runs hostile commands, by path: what they attack there is not the test run.

Orders are one line of JSON: ``tier``, ``home``, ``area`` (a folder that the host's user may write in), ``attempts``
(name → code). Each is run by this interpreter, as a command that was granted by name. For each it answers with ``null``
if the command got what it wanted, else with what stopped it. With ``--as-user ID`` it becomes that user first.
"""

import contextlib
import importlib.util
import json
import os
import secrets
import socket
import sys
import sysconfig
from pathlib import Path

import anyio

spec = importlib.util.spec_from_file_location("harness_host", Path(__file__).with_name("harness_host.py"))
harness = importlib.util.module_from_spec(spec)
spec.loader.exec_module(harness)

CANARY = "canary-5f0b1c7a9d24"
PYTHON = os.path.realpath(sys.executable)
PRELUDE = """
import ctypes, json, os, signal, socket, sys
facts = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def demand(result):
    if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(5)
        one.connect(address)
"""


@contextlib.contextmanager
def stage(area):
    """Files, services and a process to attack. Gives the facts that commands are told."""
    area = Path(area)
    private, place = area / "private", area / "place"
    for folder in (private, place, area / "open"):
        folder.mkdir()
    (private / "secret").write_text(CANARY)
    (place / "known").write_text("known")
    (place / "way-out").symlink_to(private / "secret")
    abstract = f"sideband-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as open_ones:
        served = {}
        for name, family, address in (
            ("tcp", socket.AF_INET, ("127.0.0.1", 0)),
            ("path", socket.AF_UNIX, str(area / "service")),
            ("abstract", socket.AF_UNIX, f"\0{abstract}"),
        ):
            server = open_ones.enter_context(socket.socket(family))
            server.bind(address)
            server.listen()
            served[name] = server.getsockname()
        yield {
            "host": os.getpid(),
            "uid": os.getuid(),
            "secret": str(private / "secret"),
            "private": str(private),
            "place": str(place),
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
    grants = [f"shell:binary={PYTHON},place=*,mode=read|write"]
    answers = {}
    with stage(orders["area"]) as facts:
        async with harness.make_host(orders["tier"], home=Path(orders["home"])) as host:
            facts["home"] = str(host.home)
            for name, code in orders["attempts"].items():
                params = {
                    "binary": PYTHON,
                    "args": ["-I", "-S", "-B", "-c", PRELUDE + code, json.dumps(facts)],
                    "read": [*python_places(), facts["place"]],
                    "cwd": facts["place"],
                    "timeout": 30,
                }
                answer = await host.op("shell.run", params, grants=grants)
                got = answer["exit_code"] == 0
                answers[name] = None if got else (answer["stderr"][-500:] or str(answer))
    print(json.dumps(answers))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-user"]:
        harness.__file__ = __file__
        harness.become(int(sys.argv[2]))
    anyio.run(serve, json.loads(sys.stdin.readline()))
