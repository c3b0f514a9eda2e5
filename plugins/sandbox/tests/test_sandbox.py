"""The sandbox as the host uses it: what it claims, and workers of the real runtime behind it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import sideband_sandbox
from attrs import evolve
from sideband.workers import Isolation, LaunchRequest, WorkerLimits, WorkerStartFailed, runtime_files
from sideband_sandbox import SystemSandbox
from sideband_sandbox._landlock import READ_DIRECTORY, READ_FILE
from sideband_sandbox._paths import inspect_interpreter
from sideband_sandbox._probe import prove
from sideband_sandbox.plugin import sideband_sandboxes

pytestmark = pytest.mark.anyio

SKILL = """
import os

async def who():
    return {"uid": os.getuid(), "files": sorted(os.listdir(os.path.dirname(__file__)))}

async def steal(path):
    with open(path) as file:
        return file.read()

async def spin():
    while True:
        pass
"""


@pytest.fixture
def request_for_worker(bench, area, tmp_path):
    """A skill and an SDK as the host lays them out."""
    sdk = area / f"sdk-{tmp_path.name}"
    for name, source in runtime_files().items():
        (sdk / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, sdk / name)
    snapshot = area / f"skill-{tmp_path.name}"
    snapshot.mkdir()
    (snapshot / "skill.py").write_text(SKILL)
    for path in (snapshot, *snapshot.iterdir(), sdk, *sdk.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return LaunchRequest(snapshot=snapshot, sdk=sdk)


async def receive(worker, buffer=b""):
    """The next message of a kind that matters here."""
    while True:
        while b"\n" not in buffer:
            await anyio.wait_readable(worker.channel)
            received = worker.channel.recv(65536)
            assert received, "the worker has ended"
            buffer += received
        line, _, buffer = buffer.partition(b"\n")
        message = json.loads(line)
        if message["__type__"] in {"ready", "result"}:
            return message


async def call(worker, request, function, **arguments):
    module = str(request.snapshot / "skill.py")
    body = {"module": module, "function": function, "kwargs": arguments, "working_dir": str(request.snapshot)}
    message = {"__type__": "call", "__id__": "1", "__call__": {**body, "capabilities": [], "env": {}}}
    worker.channel.sendall(json.dumps(message).encode() + b"\n")
    return await receive(worker)


async def ready(worker):
    hello = {"__type__": "hello", "version": 1}
    worker.channel.sendall(json.dumps(hello).encode() + b"\n")
    return await receive(worker)


async def test_the_entry_point_gives_one_sandbox():
    assert [sandbox.name for sandbox in sideband_sandboxes()] == ["sandbox"]


async def test_the_highest_tier_is_proved_here():
    probe = await SystemSandbox().probe()
    assert probe.isolation is Isolation.FULL, probe.hints
    assert len(probe.proofs) > 30
    assert "could not fork" in probe.proofs
    assert probe.gaps


async def test_a_proof_is_made_once():
    sandbox = SystemSandbox()
    first = await sandbox.probe()
    assert await sandbox.probe() is first


async def test_a_worker_runs_a_skill_and_keeps_it_in(request_for_worker):
    worker = await SystemSandbox().launch(request_for_worker)
    try:
        steps = (await ready(worker))["lockdown"]["steps"]
        assert steps[-2:] == ["landlock", "seccomp"]
        assert (await call(worker, request_for_worker, "who"))["files"] == ["skill.py"]
        stolen = await call(worker, request_for_worker, "steal", path="/etc/passwd")
        assert "__error__" in stolen
        assert worker.isolation is Isolation.FULL
    finally:
        await worker.close()


async def test_a_spinning_worker_can_be_killed(request_for_worker):
    worker = await SystemSandbox().launch(request_for_worker)
    try:
        await ready(worker)
        worker.kill()
        with anyio.fail_after(5):
            assert await worker.wait() == -signal.SIGKILL
            await anyio.wait_readable(worker.channel)
        assert worker.channel.recv(1) == b""
    finally:
        await worker.close()


async def test_a_skill_under_a_link_is_found(request_for_worker, area, tmp_path):
    link = area / f"link-{tmp_path.name}"
    link.symlink_to(area)
    moved = evolve(
        request_for_worker,
        snapshot=link / request_for_worker.snapshot.name,
        sdk=link / request_for_worker.sdk.name,
    )
    worker = await SystemSandbox().launch(moved)
    try:
        await ready(worker)
        assert (await call(worker, moved, "who"))["files"] == ["skill.py"]
    finally:
        await worker.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user reads his own files with his own identity")
async def test_a_skill_that_only_root_may_read_runs_as_root_without_rights(request_for_worker):
    sandbox = SystemSandbox()
    (request_for_worker.snapshot / "skill.py").chmod(0o600)
    worker = await sandbox.launch(request_for_worker)
    try:
        await ready(worker)
        assert (await call(worker, request_for_worker, "who"))["uid"] == 0
        assert "__error__" in await call(worker, request_for_worker, "steal", path="/etc/shadow")
    finally:
        await worker.close()


async def test_the_limits_of_the_request_hold(request_for_worker):
    worker = await SystemSandbox().launch(evolve(request_for_worker, limits=WorkerLimits(files=33)))
    try:
        await ready(worker)
        lines = await anyio.Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text()
        limits = await anyio.Path(f"/proc/{lines.split()[0]}/limits").read_text()
        assert "33" in next(line for line in limits.splitlines() if line.startswith("Max open files"))
    finally:
        await worker.close()


async def test_an_interpreter_that_does_not_run_is_named():
    request = LaunchRequest(snapshot=Path("/"), sdk=Path("/"))
    with pytest.raises(WorkerStartFailed, match="/none/python"):
        await SystemSandbox(python=Path("/none/python")).launch(request)


# Honesty: what is not proved is not claimed.


async def claimed(machine):
    python = Path(sys.executable)
    return (await prove(machine, python, await inspect_interpreter(python), as_root=os.geteuid() == 0)).probe


async def test_a_step_that_the_kernel_refuses_means_no_tier(machine):
    probe = await claimed(evolve(machine, landlock=evolve(machine.landlock, files=1 << 60)))
    assert probe.isolation is Isolation.NONE
    assert probe.proofs == ()
    assert all("landlock" in hint for hint in probe.hints)


async def test_a_landlock_that_lets_files_be_written_means_no_lower_tier(machine):
    only_reading = evolve(machine.landlock, files=READ_FILE | READ_DIRECTORY)
    no_namespaces = evolve(machine.architecture, pivot_root=10_000)
    probe = await claimed(evolve(machine, landlock=only_reading, architecture=no_namespaces))
    assert probe.isolation is Isolation.NONE
    assert any("write in its own folder" in hint for hint in probe.hints), probe.hints


async def test_a_filter_that_lets_sockets_be_made_means_no_tier(machine):
    socket_call = {"x86_64": 41, "aarch64": 198}[machine.architecture.machine]
    calls = {**machine.architecture.calls, "sysinfo": socket_call}
    probe = await claimed(evolve(machine, architecture=evolve(machine.architecture, calls=calls)))
    assert probe.isolation is Isolation.NONE
    assert any("open an IPv4 socket" in hint for hint in probe.hints)


async def test_a_filter_that_breaks_ordinary_work_means_no_tier(machine):
    calls = {name: number for name, number in machine.architecture.calls.items() if name != "epoll_create1"}
    probe = await claimed(evolve(machine, architecture=evolve(machine.architecture, calls=calls)))
    assert probe.isolation is Isolation.NONE
    assert any("could not run an event loop" in hint for hint in probe.hints)


async def test_where_the_root_can_not_be_changed_the_lower_tier_is_claimed_with_the_reason(machine):
    probe = await claimed(evolve(machine, architecture=evolve(machine.architecture, pivot_root=10_000)))
    assert probe.isolation is Isolation.NO_NAMESPACES
    assert any("pivot_root" in hint for hint in probe.hints)
    assert any("stat" in gap for gap in probe.gaps)


async def test_without_anything_proved_a_worker_starts_unconfined_and_says_so(request_for_worker, machine):
    weak = evolve(machine, landlock=evolve(machine.landlock, files=1 << 60))
    worker = await SystemSandbox(weak).launch(request_for_worker)
    try:
        await ready(worker)
        assert worker.isolation is Isolation.NONE
        assert "root:" in (await call(worker, request_for_worker, "steal", path="/etc/passwd"))["value"]
    finally:
        await worker.close()


# The host as an ordinary user: everything is imported first, because the checkout may be closed to him.
AS_USER = """
import asyncio, encodings.ascii, encodings.idna, json, os, random, sys, tempfile
import anyio, anyio._backends._asyncio, trio, anyio._backends._trio
import sideband.workers, sideband.workers._launcher
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import sideband_sandbox._sandbox
from sideband_sandbox import SystemSandbox
os.setgroups([]); os.setresgid(61234, 61234, 61234); os.setresuid(61234, 61234, 61234)
async def main():
    return await SystemSandbox(python=Path(sys.argv[2])).probe()
probe = anyio.run(main)
print(json.dumps([probe.isolation.label, len(probe.proofs), probe.hints]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs all the other tests as himself")
async def test_an_ordinary_user_gets_the_highest_tier_too(area, open_python):
    packages = area / "packages"
    if not packages.exists():
        source = Path(sideband_sandbox.__file__).parent
        shutil.copytree(source, packages / "sideband_sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    answer = await anyio.run_process(
        [sys.executable, "-c", AS_USER, str(packages), str(open_python)],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": "/tmp"},
        stderr=subprocess.PIPE,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr.decode()
    tier, proofs, hints = json.loads(answer.stdout)
    assert tier == "full", hints
    assert proofs > 30
