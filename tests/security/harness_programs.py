"""A host in a process of its own that runs hostile programs, run by path, so that they do not attack the test run.

Orders are one line of JSON: ``tier``, ``home``, ``area`` (a folder that the host's user may write to), ``attempts``
(name → code) and ``kind``. One program run by this interpreter makes each attempt in a child process: a command of
`shell`, or a server of `mcp`, as ``kind`` says. Another command, whose grant does
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
def execute_copy(folder):
    import shutil, subprocess
    copy = shutil.copy('/bin/true', folder + '/copy')
    subprocess.run([copy], check=True)
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
def outcomes():
    return json.dumps({name: attempt(code) for name, code in attempts.items()})
"""
COMMAND = f"{PROGRAM}print(outcomes())\n"
SERVER = f"""{PROGRAM}
def result_of(message):
    if message["method"] == "initialize":
        return {{
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {{"tools": {{}}}},
            "serverInfo": {{"name": "attacker", "version": "1"}},
        }}
    if message["method"] == "tools/list":
        return {{"tools": [{{"name": "attack", "inputSchema": {{"type": "object"}}}}]}}
    return {{"content": [{{"type": "text", "text": outcomes()}}]}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {{"jsonrpc": "2.0", "id": message["id"]}}
    if message["method"] == "server/discover":
        answer["error"] = {{"code": -32601, "message": "unknown method"}}
    else:
        answer["result"] = result_of(message)
    print(json.dumps(answer), flush=True)
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
    private, place, writable, built = area / "private", area / "place", area / "writable", area / "built"
    for folder in (private, place, writable, built, area / "open"):
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
            "built": str(built),
            "open": str(area / "open"),
            "port": served["tcp"][1],
            "service": served["path"],
            "abstract": abstract,
        }


def python_places():
    places = {Path(sysconfig.get_path("stdlib")).resolve(), Path(sys.base_prefix, "lib").resolve()}
    return [str(place) for place in places if not place.is_relative_to("/usr")]


def words(program, facts, attempts):
    return [PYTHON, "-I", "-S", "-B", "-c", program, json.dumps(facts), json.dumps(attempts)]


async def serve(orders):
    os.environ["CANARY"] = CANARY
    with stage(orders["area"]) as facts:
        facts["home"] = orders["home"]
        attack = {"command": as_command, "server": as_server}[orders["kind"]]
        print(json.dumps(await attack(orders, facts)))


async def as_command(orders, facts):
    grants = [f"shell:binary={PYTHON},runs=any,place=*,mode=read|write|execute"]
    binary, *args = words(COMMAND, facts, orders["attempts"])
    async with harness.make_host(orders["tier"], home=Path(orders["home"])) as host:
        params = {
            "binary": binary,
            "args": args,
            "read": [*python_places(), facts["place"]],
            "write": [facts["writable"]],
            "execute": [facts["built"]],
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
    return outcomes


async def as_server(orders, facts):
    server = {
        "command": words(SERVER, facts, orders["attempts"]),
        "read": [*python_places(), facts["place"]],
        "write": [facts["writable"]],
        "folder": facts["place"],
    }
    settings = {"plugins": {"mcp": {"servers": {"attacker": server}}}}
    async with harness.make_host(orders["tier"], home=Path(orders["home"]), settings=settings) as host:
        listed = await host.op("mcp.list", {"server": "attacker"})
        catalog = {"server": "attacker", "catalog": listed["offered"]}
        await host.op("mcp.accept", {**catalog, "changes": listed["changes"]})
        result = await host.op("mcp.call", {**catalog, "tool": "attack"})
    return json.loads(result["content"][0]["text"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-user"]:
        harness.__file__ = __file__
        harness.become(int(sys.argv[2]))
    anyio.run(serve, json.loads(sys.stdin.readline()))
