"""A host in a process namespace of its own, as in a container, run by path.

Arguments: where the host runs, and optionally the user to switch to first. An ordinary user creates the process
namespace in a user namespace, in which it is root, as in a rootless container.

    first                  as process 1 of a new process namespace
    second                 as a child of its process 1
    without-proc           like first, but with the ``/proc`` of the former process namespace
    without-administrator  in no process namespace, without CAP_SYS_ADMIN and control groups
    same-processes         in no process namespace, as the same user as in one
    outside                in no new namespace

Each order is one line of JSON, as is its answer. The first one opens the host: ``tier``, ``home``, ``skills``
(folders). The others have ``call`` (a tool), ``program`` (a command), ``start`` (a command that keeps running), or
``probe`` (the report about the tier). The host closes at the end of the input; the last answer has what was left then.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("harness_host", Path(__file__).with_name("harness_host.py"))
harness = importlib.util.module_from_spec(spec)
spec.loader.exec_module(harness)


def enter(where):
    """Restart in new namespaces."""
    script = [sys.executable, __file__, "outside"]
    # A shell would replace itself with its last command.
    inside = script if where == "first" else ["sh", "-c", '"$@"; exit $?', "sh", *script]
    users = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    if where == "same-processes":
        os.execvp("unshare", ["unshare", *users, *script])
    proc = [] if where == "without-proc" else ["--mount-proc"]
    if where == "without-administrator":
        # Root of a container: without the capability and control groups, but the kernel permits user namespaces.
        hidden = ["sh", "-c", 'umount --recursive --lazy /sys/fs/cgroup; exec "$@"', "sh"]
        dropped = ["setpriv", "--bounding-set", "-sys_admin"]
        os.execvp("unshare", ["unshare", "--mount", *hidden, *dropped, *script])
    os.execvp("unshare", ["unshare", *users, "--pid", "--fork", "--kill-child", *proc, *inside])


async def serve():
    """Open a host, and carry out orders."""
    import anyio
    from sideband import CallRequest, SidebandError
    from sideband_sandbox import SystemSandbox

    def reply(**answer):
        print(json.dumps(answer), flush=True)

    async def next_order():
        line = await anyio.to_thread.run_sync(sys.stdin.readline)
        return json.loads(line) if line else None

    async def carry_out(order):
        if "call" in order:
            result = await host.run(CallRequest(order["call"], {}, grants=()))
            return {"isolation": result.isolation, "output": result.output}
        if "probe" in order:
            sandbox = SystemSandbox()
            probe = await sandbox.probe()
            proofs = [*probe.proofs, *await sandbox.prove_programs()]
            await sandbox.close()
            return {"isolation": probe.isolation.label, "hints": probe.hints, "gaps": probe.gaps, "proofs": proofs}
        params = {"binary": order["command"][0], "args": order["command"][1:], "timeout": 120}
        return await host.op("shell.run", params)

    order = await next_order()
    folders = [Path(folder) for folder in order["skills"]]
    async with (
        harness.make_host(order["tier"], home=Path(order["home"]), skill_dirs=folders) as host,
        anyio.create_task_group() as tasks,
    ):
        reply(pid=os.getpid(), uid=os.geteuid())
        while (order := await next_order()) is not None:
            if order.get("start"):
                tasks.start_soon(carry_out, order)
                continue
            try:
                reply(**await carry_out(order))
            except SidebandError as error:
                reply(code=error.code, message=str(error), hint=error.hint)
        tasks.cancel_scope.cancel()
    reply(left=remaining_children())


def remaining_children():
    """Return the children of this process, zombies included."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        name, _, fields = path.read_text(errors="replace").rpartition(")")
        if int(fields.split()[1]) == os.getpid():
            found.append(name)
    return found


def main():
    """Switch to another user, enter the namespaces, or serve."""
    where, *user = sys.argv[1:]
    if user:
        harness.__file__ = __file__
        harness.become(int(user[0]), where)
    if where != "outside":
        enter(where)
    import anyio

    anyio.run(serve)


if __name__ == "__main__":
    main()
