"""Workers launched by the sandbox, with the real runtime."""

import json
import os
import signal
from pathlib import Path

import anyio
import pytest
from attrs import evolve
from sideband.workers import (
    Isolation,
    WorkerCall,
    WorkerLimits,
    WorkerOverLimit,
    WorkerPool,
    WorkerStartFailed,
)
from sideband_sandbox import SystemSandbox
from sideband_sandbox._errors import ZygoteFailed
from sideband_sandbox._machine._cgroups import find_cgroups
from sideband_sandbox._machine._processes import fresh_uid
from sideband_sandbox._workers._forks import Zygote
from sideband_sandbox._workers._plan import worker_orders, worker_plan, zygote_plan

pytestmark = pytest.mark.anyio

BACKENDS = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


async def receive(worker, buffer=b""):
    """Return the next ``ready`` or ``result`` message."""
    while True:
        while b"\n" not in buffer:
            await anyio.wait_readable(worker.channel)
            received = worker.channel.recv(65536)
            assert received, "the worker has exited"
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


async def test_worker_runs_a_skill_in_isolation(verified_sandbox, request_for_worker):
    worker = await verified_sandbox.launch(request_for_worker)
    try:
        steps = (await ready(worker))["lockdown"]["steps"]
        assert steps[-2:] == ["landlock", "seccomp"]
        assert os.getsid(worker.pid) == worker.pid
        assert (await call(worker, request_for_worker, "who"))["files"] == ["skill.py"]
        stolen = await call(worker, request_for_worker, "steal", path="/etc/passwd")
        assert "__error__" in stolen
        assert worker.isolation is Isolation.FULL
    finally:
        await worker.close()


async def test_worker_sees_no_details_of_the_machine_or_the_zygote(verified_sandbox, request_for_worker):
    request = evolve(request_for_worker, environment={"TZ": "UTC"})
    worker = await verified_sandbox.launch(request)
    try:
        await ready(worker)
        seen = await call(worker, request, "where")
        assert seen["environment"] == {"TZ": "UTC", "MALLOC_ARENA_MAX": "2"}
        assert len(seen["argv"]) == 1
        assert seen["flags"] == [1, 1, 1]
        assert seen["name"] == "worker"
        assert seen["parent"] == 1
        # The kernel shows the environment with which the process was started.
        assert await anyio.Path(f"/proc/{worker.pid}/environ").read_bytes() == b"MALLOC_ARENA_MAX=2\0"
    finally:
        await worker.close()


async def test_workers_of_one_zygote_have_separate_users_and_files(verified_sandbox, request_for_worker, make_request):
    other = make_request("another")
    first, second = await verified_sandbox.launch(request_for_worker), await verified_sandbox.launch(other)
    try:
        await ready(first)
        await ready(second)
        answers = [await call(first, request_for_worker, "who"), await call(second, other, "who")]
        assert all(answer["files"] == ["skill.py"] for answer in answers)
        if os.geteuid() == 0:
            assert answers[0]["uid"] != answers[1]["uid"]
        assert "__error__" in await call(first, request_for_worker, "steal", path=str(other.snapshot / "skill.py"))
        assert "__error__" in await call(first, request_for_worker, "neighbor", path=str(other.snapshot))
        assert "__error__" in await call(first, request_for_worker, "neighbor", path=str(other.snapshot.parent))
    finally:
        await first.close()
        await second.close()


async def test_skill_created_after_the_zygote_started_is_readable(verified_sandbox, request_for_worker, make_request):
    await (await verified_sandbox.launch(request_for_worker)).close()
    later = make_request("later")
    worker = await verified_sandbox.launch(later)
    try:
        await ready(worker)
        assert (await call(worker, later, "who"))["files"] == ["skill.py"]
    finally:
        await worker.close()


async def test_worker_reads_only_its_own_packages(verified_sandbox, request_for_worker, make_request):
    mine, others = make_request("packages-mine").snapshot, make_request("packages-others").snapshot
    request = evolve(request_for_worker, packages=mine)
    worker = await verified_sandbox.launch(request)
    try:
        await ready(worker)
        assert (await call(worker, request, "neighbor", path=str(mine)))["value"] == ["skill.py"]
        assert "__error__" in await call(worker, request, "neighbor", path=str(others))
    finally:
        await worker.close()


@BACKENDS
async def test_kill_ends_a_worker_and_closes_its_channel(sandbox, request_for_worker):
    worker = await sandbox.launch(request_for_worker)
    try:
        await ready(worker)
        worker.kill()
        with anyio.fail_after(5):
            assert await worker.wait() == -signal.SIGKILL
            await anyio.wait_readable(worker.channel)
        assert worker.channel.recv(1) == b""
    finally:
        await worker.close()
    # The descriptor is closed and may have been reused.
    worker.kill()


@BACKENDS
@pytest.mark.parametrize(("function", "code"), [("leave", 7), ("fault", -signal.SIGSEGV)])
async def test_all_waiters_receive_the_exit_code(sandbox, request_for_worker, function, code):
    worker = await sandbox.launch(request_for_worker)
    codes = []

    async def learn():
        codes.append(await worker.wait())

    try:
        await ready(worker)
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(learn)
            waiting.start_soon(learn)
            with pytest.raises(AssertionError, match="has exited"):
                await call(worker, request_for_worker, function)
        assert codes == [code, code]
        # The process ID may have been reused.
        worker.pid = os.getpid()
        assert worker.usage() is None
    finally:
        await worker.close()


async def test_skill_below_a_symbolic_link_is_found(sandbox, request_for_worker, area, tmp_path):
    link = area / f"link-{tmp_path.name}"
    link.symlink_to(area)
    moved = evolve(
        request_for_worker,
        snapshot=link / request_for_worker.snapshot.name,
        sdk=link / request_for_worker.sdk.name,
    )
    worker = await sandbox.launch(moved)
    try:
        await ready(worker)
        assert (await call(worker, moved, "who"))["files"] == ["skill.py"]
    finally:
        await worker.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="workers of an ordinary user keep the user ID of the host")
async def test_skill_readable_only_by_root_runs_as_root_without_capabilities(verified_sandbox, request_for_worker):
    (request_for_worker.snapshot / "skill.py").chmod(0o600)
    worker = await verified_sandbox.launch(request_for_worker)
    try:
        await ready(worker)
        assert (await call(worker, request_for_worker, "who"))["uid"] == 0
        assert "__error__" in await call(worker, request_for_worker, "steal", path="/etc/shadow")
    finally:
        await worker.close()


async def test_limits_of_the_request_are_set(verified_sandbox, request_for_worker):
    worker = await verified_sandbox.launch(evolve(request_for_worker, limits=WorkerLimits(files=33)))
    try:
        await ready(worker)
        limits = await anyio.Path(f"/proc/{worker.pid}/limits").read_text()
        assert "33" in next(line for line in limits.splitlines() if line.startswith("Max open files"))
    finally:
        await worker.close()


async def test_usage_is_reported_until_close(verified_sandbox, request_for_worker):
    worker = await verified_sandbox.launch(request_for_worker)
    try:
        await ready(worker)
        usage = worker.usage()
        assert 1 << 20 < usage.memory < 1 << 28
        assert usage.threads == 1
        assert usage.processor < 10
    finally:
        await worker.close()
    assert worker.usage() is None


async def test_worker_without_a_verified_tier_starts_unconfined(request_for_worker, machine):
    weak = evolve(machine, landlock=evolve(machine.landlock, files=1 << 60))
    sandbox = SystemSandbox(weak)
    worker = await sandbox.launch(request_for_worker)
    try:
        await ready(worker)
        assert worker.isolation is Isolation.NONE
        assert "root:" in (await call(worker, request_for_worker, "steal", path="/etc/passwd"))["value"]
    finally:
        await worker.close()
        await sandbox.close()


HOG = """
async def hog():
    kept = []
    while True:
        kept.append(b"x" * (1 << 20))
"""


async def test_exceeding_the_memory_limit_raises_worker_over_limit(sandbox, make_request):
    request = make_request("hog")
    (request.snapshot / "skill.py").write_text(HOG)
    request = evolve(request, limits=WorkerLimits(memory=64 << 20))
    async with WorkerPool(sandbox) as pool:
        with pytest.raises(WorkerOverLimit, match="64 MiB") as raised:
            await pool.call(worker_call(request, "hog"))
    assert raised.value.code == "worker.memory"


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups usually require root")
async def test_control_group_enforces_memory_and_is_removed(verified_sandbox, make_request):
    request = evolve(make_request("hog"), limits=WorkerLimits(memory=64 << 20))
    (request.snapshot / "skill.py").write_text(HOG)
    worker = await verified_sandbox.launch(request)
    groups = [Path("/sys/fs/cgroup", line.split(":")[1], line.split(":")[2].strip("/")) for line in groups_of(worker)]
    try:
        await ready(worker)
        with pytest.raises(AssertionError, match="has exited"):
            await call(worker, request, "hog")
        assert await worker.wait() == -signal.SIGKILL
        assert worker.was_out_of_memory()
        assert all(group.exists() for group in groups)
    finally:
        await worker.close()
    assert groups
    assert not any(group.exists() for group in groups)


def groups_of(worker):
    lines = Path(f"/proc/{worker.pid}/cgroup").read_text().splitlines()
    return [line for line in lines if "/sideband-" in line]


def worker_call(request, function):
    return WorkerCall(
        id="1",
        tool=f"test.{function}",
        domain="test",
        launch=request,
        module=str(request.snapshot / "skill.py"),
        function=function,
        arguments={},
        timeout=30,
    )


def zygote_of(worker):
    """Return the process ID of a worker's zygote."""
    lines = Path(f"/proc/{worker.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("PPid:")).split()[1])


def exists(pid):
    return Path(f"/proc/{pid}").exists()


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def open_descriptors(process="self"):
    return sorted(path.name for path in Path(f"/proc/{process}/fd").iterdir())


@BACKENDS
async def test_killed_zygote_ends_its_workers_and_is_replaced(sandbox, request_for_worker, monkeypatch):
    # The exit must be detected without waiting for a timeout.
    monkeypatch.setattr("sideband_sandbox._workers._forks._END_SECONDS", 60)
    monkeypatch.setattr("sideband_sandbox._workers._forks._FORK_SECONDS", 60)
    worker = await sandbox.launch(request_for_worker)
    try:
        await ready(worker)
        os.kill(zygote_of(worker), signal.SIGKILL)
        with anyio.fail_after(10):
            assert await worker.wait() == -signal.SIGKILL
    finally:
        await worker.close()
    with anyio.fail_after(30):
        again = await sandbox.launch(request_for_worker)
    try:
        assert (await ready(again))["__type__"] == "ready"
        assert again.isolation is Isolation.FULL
    finally:
        await again.close()


@BACKENDS
async def test_hanging_zygote_is_replaced(sandbox, request_for_worker, monkeypatch):
    monkeypatch.setattr("sideband_sandbox._workers._forks._FORK_SECONDS", 0.2)
    worker = await sandbox.launch(request_for_worker)
    await worker.close()
    worker = await sandbox.launch(request_for_worker)
    os.kill(zygote_of(worker), signal.SIGSTOP)
    again = await sandbox.launch(request_for_worker)
    try:
        assert (await ready(again))["__type__"] == "ready"
    finally:
        await again.close()
        await worker.close()


async def test_interpreter_that_never_becomes_ready_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("sideband_sandbox._workers._forks._START_SECONDS", 0.2)
    monkeypatch.setattr("sideband_sandbox._workers._forks._END_SECONDS", 0.2)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    before = children(os.getpid())
    began = anyio.current_time()
    with pytest.raises(ZygoteFailed, match=r"not ready within 0.2 s"):
        await Zygote.start(python, Isolation.NO_NAMESPACES, {"steps": []}, {"steps": []})
    assert anyio.current_time() - began < 30
    assert children(os.getpid()) == before


async def test_close_ends_the_zygote(request_for_worker, area, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(area))
    sandbox = SystemSandbox()
    worker = await sandbox.launch(request_for_worker)
    zygote = zygote_of(worker)
    assert exists(zygote)
    await worker.close()
    await sandbox.close()
    assert not exists(zygote)
    assert list(area.glob("sideband-probe-*")) == []


@BACKENDS
async def test_many_workers_leave_no_descriptor_or_process(sandbox, request_for_worker):
    await (await sandbox.launch(request_for_worker)).close()
    before = open_descriptors()
    for _ in range(4):
        workers = []

        async def launch(workers=workers):
            workers.append(await sandbox.launch(request_for_worker))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(launch)
        zygote = zygote_of(workers[0])
        for worker in workers:
            await worker.close()
    assert open_descriptors() == before
    assert children(zygote) == []
    # The three standard streams and the socket to the host; no descriptor of exited workers.
    assert len(open_descriptors(zygote)) == 4


@BACKENDS
async def test_cancelled_launch_leaves_no_process(sandbox, request_for_worker, until):
    worker = await sandbox.launch(request_for_worker)
    zygote = zygote_of(worker)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(sandbox.launch, request_for_worker)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    await until(lambda: children(zygote) == [worker.pid])
    await worker.close()


@BACKENDS
async def test_launch_cancelled_after_its_order_leaks_no_descriptor(sandbox, request_for_worker):
    first = await sandbox.launch(request_for_worker)
    zygote = zygote_of(first)
    await first.close()
    before = open_descriptors()
    made = []

    async def launch():
        made.append(await sandbox.launch(request_for_worker))

    os.kill(zygote, signal.SIGSTOP)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(launch)
        with anyio.move_on_after(0.2):
            await anyio.sleep_forever()
        tasks.cancel_scope.cancel()
        os.kill(zygote, signal.SIGCONT)
    # The next launch reads the answer to the cancelled order, if there is one.
    await launch()
    for worker in made:
        await worker.close()
    assert open_descriptors() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="control groups usually require root")
async def test_failed_fork_raises_and_keeps_the_zygote(sandbox, request_for_worker):
    worker = await sandbox.launch(request_for_worker)
    zygote = zygote_of(worker)
    full = find_cgroups().confine(zygote, WorkerLimits(threads=1))
    try:
        with pytest.raises(WorkerStartFailed, match="cannot start a worker") as raised:
            await sandbox.launch(request_for_worker)
        assert "allow fewer workers" in raised.value.hint
        assert (await ready(worker))["__type__"] == "ready"
        for folder in full.folders:
            if (folder / "pids.max").exists():
                (folder / "pids.max").write_text("max")
        again = await sandbox.launch(request_for_worker)
        assert zygote_of(again) == zygote
        await again.close()
    finally:
        await worker.close()
        await sandbox.close()
        full.close()


async def test_zygote_kills_its_workers_without_the_parent_step(bench, request_for_worker):
    variant = bench.variant("root" if os.geteuid() == 0 else "user", "no-namespaces")
    plan = worker_plan(bench.platform, variant)
    # Without this step, neither the kernel nor the worker itself ends the worker.
    plan = {"steps": [step for step in plan["steps"] if step[0] != "parent"]}
    start = zygote_plan(bench.platform, variant, bench.snapshot)
    zygote = await Zygote.start(bench.platform.python, Isolation.NO_NAMESPACES, start, plan)
    request = evolve(request_for_worker, limits=WorkerLimits())
    worker = await zygote.fork(request, worker_orders(variant, request, fresh_uid()))
    try:
        await ready(worker)
        await zygote.close()
        with anyio.fail_after(5):
            assert await worker.wait() == -signal.SIGKILL
    finally:
        await worker.close()


async def test_worker_has_the_time_zone_of_its_environment(verified_sandbox, request_for_worker):
    request = evolve(request_for_worker, environment={"TZ": "XYZ-5"})
    worker = await verified_sandbox.launch(request)
    try:
        await ready(worker)
        assert (await call(worker, request, "zone"))["value"] == ["XYZ", "XYZ"]
    finally:
        await worker.close()
