"""A host in a process of its own, run by path, so that hostile skills do not attack the test run.

Orders are one line of JSON: ``tier``, ``home``, ``area`` (a folder that the host's user may write to), ``skills``
(folders), ``neighbor`` (a tool that is called first, and whose worker keeps running), ``calls`` (tools), ``latecomer``
(a tool that is called last). For each call the answer is its output, or a text if it failed. With ``--as-user ID`` it
switches to that user first.

Also loaded by ``conftest.py`` for hosts in the test process.
"""

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

CANARY = "canary-2f91c07e5ab3"
NEIGHBOR = "neighbor-5ab3"  # the process name of the neighbor's worker, by which the host finds it
_CLONE_NEWNS = 0x20000
_MS_BIND_RECURSIVE = 0x5000
_MS_PRIVATE_RECURSIVE = 0x44000
_NO_SUCH_CALL = 10_000


def make_host(tier, *, home, settings=None, plugins=(), **options):
    """Return a host whose workers run on exactly this tier: ``full``, ``no-namespaces`` or ``none``."""
    from sideband import Host, Plugin

    settings = dict(settings or {})
    policy = {"isolation": tier, **settings.pop("policy", {})}
    if tier != "full":
        policy["deny"] = {"sandbox.sandbox": "the test chooses the tier", **policy.get("deny", {})}
    if tier == "no-namespaces":
        lower = SimpleNamespace(sideband_sandboxes=_sandboxes_without_namespaces)
        plugins = [*plugins, Plugin(kind="sandbox", name="lower", value=lower)]
    return Host(home=home, settings={"policy": policy, **settings}, plugins=plugins, **options)


def _sandboxes_without_namespaces():
    """Return a sandbox without a working pivot_root, whose strongest tier is therefore the lower one."""
    from attrs import evolve
    from sideband_sandbox import SystemSandbox
    from sideband_sandbox._machine._inspection import inspect_machine

    machine, reason = inspect_machine()
    assert machine is not None, reason
    return [SystemSandbox(evolve(machine, architecture=evolve(machine.architecture, pivot_root=_NO_SUCH_CALL)))]


def become(user, *arguments):
    """Restart as an ordinary user, with bind mounts that make the interpreter and the code accessible."""
    libc = ctypes.CDLL(None, use_errno=True)

    def succeed(result):
        if result != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    needed = {Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2]}
    closed = {outer for path in needed for outer in path.parents if not outer.stat().st_mode & 1}
    succeed(libc.unshare(_CLONE_NEWNS))
    succeed(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_PRIVATE_RECURSIVE), None))
    for outer in sorted(closed):
        opened = Path(tempfile.mkdtemp(prefix="sideband-opened-"))
        succeed(libc.mount(b"none", os.fsencode(opened), b"tmpfs", ctypes.c_ulong(0), b"mode=0755"))
        for path in (path for path in needed if path.is_relative_to(outer)):
            inner = opened / path.relative_to(outer)
            inner.mkdir(parents=True, exist_ok=True)
            succeed(libc.mount(os.fsencode(path), os.fsencode(inner), None, ctypes.c_ulong(_MS_BIND_RECURSIVE), None))
        succeed(libc.mount(os.fsencode(opened), os.fsencode(outer), None, ctypes.c_ulong(_MS_BIND_RECURSIVE), None))
        succeed(libc.umount2(os.fsencode(opened), 2))
        opened.rmdir()
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    # Execute the interpreter again, because a process that has changed its user ID is not dumpable, unlike a real host.
    os.execv(sys.executable, [sys.executable, __file__, *arguments])


def _processes():
    """Yield the ID, the name and the parent of each process that the host can see."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                lines = (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines()
                fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
                yield int(folder.name), fields["Name"], int(fields["PPid"])


def _is_own(pid, parents):
    while pid > 1:
        pid = parents.get(pid, 0)
        if pid == os.getpid():
            return True
    return False


def _find_neighbor():
    """Return the process IDs of the neighbor's worker and of its parent, as the host sees them."""
    processes = {pid: (name, parent) for pid, name, parent in _processes()}
    parents = {pid: parent for pid, (_, parent) in processes.items()}
    (found,) = [pid for pid, (name, _) in processes.items() if name == NEIGHBOR and _is_own(pid, parents)]
    return found, parents[found]


@contextlib.contextmanager
def world(area):
    """Create targets: files, servers, and a process of the same user. Yield the facts that skills receive."""
    open_folder = area / "open"
    open_folder.mkdir()
    (area / "secret.txt").write_text(CANARY)
    for name in ("known", "linked", "shortened", "moved", "removed"):
        (open_folder / name).write_text(CANARY)
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        addresses = {"path": str(area / "stream"), "datagrams": str(area / "datagrams")}
        abstract = f"sideband-{os.getpid()}"
        for kind, address in (
            (socket.SOCK_STREAM, addresses["path"]),
            (socket.SOCK_DGRAM, addresses["datagrams"]),
            (socket.SOCK_STREAM, f"\0{abstract}"),
        ):
            server = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            server.bind(address)
            if kind == socket.SOCK_STREAM:
                server.listen(64)
        victim = stack.enter_context(subprocess.Popen(["sleep", "600"], start_new_session=True))
        stack.callback(victim.kill)
        secret = stack.enter_context((area / "secret.txt").open())
        os.set_inheritable(secret.fileno(), True)
        memory = ctypes.create_string_buffer(CANARY.encode())
        yield {
            "host": os.getpid(),
            "host_group": os.getpgrp(),
            "user_home": str(Path.home()),
            "victim": victim.pid,
            "area": str(area),
            "open": str(open_folder),
            "descriptor": secret.fileno(),
            "address": ctypes.addressof(memory),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract,
            **addresses,
        }


async def attempt(host, tool, facts):
    """Call a hostile tool. Return its output, or a text with the error and the last printed line if the call failed."""
    from sideband import CallRequest, SidebandError

    lines = []
    try:
        result = await host.run(CallRequest(tool, {"facts": facts}, grants=(), timeout=60, on_log=lines.append))
    except SidebandError as error:
        return f"{error.code}: {error}, after {lines[-1].text if lines else 'no line'}"
    return result.output


async def run(orders):
    """Carry out the orders."""
    import pydantic
    import sideband
    from sideband import CallRequest

    home, area = Path(orders["home"]), Path(orders["area"])
    folders = [Path(folder) for folder in orders["skills"]]
    with world(area) as facts:
        async with make_host(orders["tier"], home=home, skill_dirs=folders) as host:
            (home / "grants.toml").write_text("# no grants\n")
            await host.op("sql.execute", {"sql": "CREATE TABLE secrets (secret)", "db": "canary.db"})
            settled = await host.run(CallRequest(orders["neighbor"], {"name": NEIGHBOR}, grants=()))
            facts["neighbor"], facts["parent"] = _find_neighbor()
            facts |= {"home": str(home), "core": sideband.__file__, "package": pydantic.__file__, **settled.output}
            for name in ("ledger", "store"):
                facts[name] = str(
                    next(path for path in (home / name).rglob("*") if path.is_file() and path.stat().st_size)
                )
            outcomes = {tool: await attempt(host, tool, facts) for tool in orders["calls"]}
            unharmed = _find_neighbor() == (facts["neighbor"], facts["parent"])
            late = await host.run(CallRequest(orders["latecomer"], {"name": "latecomer"}, grants=()))
    given = [settled.output, late.output]
    return {"tier": settled.isolation, "given": given, "unharmed": unharmed, "outcomes": outcomes}


def main():
    """Switch to another user, or run the host."""
    if sys.argv[1:2] == ["--as-user"]:
        become(int(sys.argv[2]))
    import anyio

    orders = json.loads(sys.stdin.readline())
    report = anyio.run(run, orders)
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
