"""Measures the start of an isolated worker, from the request to ``ready``, and its private memory.

The floor is the minimum with the same isolation: a process that has imported only the modules of workers forks, and the
child runs the same lockdown and sends one byte.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import anyio
from sideband.workers import LaunchRequest, WorkerProcess, runtime_files
from sideband_sandbox import SystemSandbox
from sideband_sandbox._inside import LOCKDOWN
from sideband_sandbox._machine._inspection import inspect_machine
from sideband_sandbox._machine._interpreter import inspect_interpreter
from sideband_sandbox._machine._processes import fresh_uid
from sideband_sandbox._workers._candidates import candidates
from sideband_sandbox._workers._plan import WorkerPlatform, worker_orders, worker_plan, zygote_plan

from ._rows import Row, report

ROUNDS = 60
TOGETHER = 20

FLOOR = """
import asyncio, importlib.util, json, os, sys
options = json.loads(sys.stdin.readline())
spec = importlib.util.spec_from_file_location("lockdown", options["lockdown"])
lockdown = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lockdown)
lockdown.apply(options["zygote"])
zygote = os.getpid()
for _ in sys.stdin:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(writing, 3)
        lockdown.apply(options["worker"], {**options["orders"], "parent": {"pid": zygote}})
        os.write(3, b"x")
        os._exit(0)
    os.read(reading, 1)
    print(flush=True)
    os.close(reading)
    os.close(writing)
    os.waitpid(pid, 0)
"""


def _floor(request: LaunchRequest) -> list[float]:
    machine, reason = inspect_machine()
    assert machine is not None, reason
    python = Path(sys.executable)
    platform = WorkerPlatform(machine, python, anyio.run(inspect_interpreter, python), (request.snapshot.parent,))
    _, variant = candidates(as_root=os.geteuid() == 0)[0]
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", FLOOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        options = {
            "lockdown": str(LOCKDOWN),
            "zygote": zygote_plan(platform, variant, request.snapshot),
            "worker": worker_plan(platform, variant),
            "orders": worker_orders(variant, request, fresh_uid()),
        }
        print(json.dumps(options), file=process.stdin, flush=True)
        times = []
        for _ in range(ROUNDS):
            started = perf_counter()
            print(file=process.stdin, flush=True)
            process.stdout.readline()
            times.append(perf_counter() - started)
        process.stdin.close()
    return times


async def _ready(worker: WorkerProcess) -> None:
    worker.channel.send(b'{"__type__":"hello","version":1}\n')
    await anyio.wait_readable(worker.channel)
    assert b"ready" in worker.channel.recv(65_536)


async def _ours(request: LaunchRequest) -> tuple[list[float], float, float]:
    sandbox = SystemSandbox()
    try:
        started = perf_counter()
        await sandbox.probe([request.snapshot.parent])
        proved = perf_counter() - started
        times = []
        for _ in range(ROUNDS):
            started = perf_counter()
            worker = await sandbox.launch(request)
            await _ready(worker)
            times.append(perf_counter() - started)
            await worker.close()
        return times, await _own_memory(sandbox, request), proved
    finally:
        await sandbox.close()


async def _own_memory(sandbox: SystemSandbox, request: LaunchRequest) -> float:
    """Return the median private memory of several workers in MB."""
    workers = [await sandbox.launch(request) for _ in range(TOGETHER)]
    try:
        for worker in workers:
            await _ready(worker)
        return median(_private(worker.pid) for worker in workers)
    finally:
        for worker in workers:
            await worker.close()


def _private(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1000


def _request(folder: Path) -> LaunchRequest:
    folder.chmod(0o755)
    for name, source in runtime_files().items():
        (folder / "sdk" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / "sdk" / name)
    (folder / "skill").mkdir()
    (folder / "skill" / "skill.py").write_text("async def answer(): return 42\n")
    return LaunchRequest(snapshot=folder / "skill", sdk=folder / "sdk")


def main() -> None:
    """Run the benchmark and print one line of JSON."""
    with tempfile.TemporaryDirectory() as name:
        request = _request(Path(name))
        floor = median(_floor(request)) * 1000
        times, private, proved = anyio.run(_ours, request)
    ours = median(times) * 1000
    report(
        [
            Row("isolated worker, from request to ready", ours, "ms", floor, bound=2),
            Row("private memory of a worker", private, "MB", bound=5, is_absolute=True),
        ],
        first_with_proof_ms=round(proved * 1000),
    )


if __name__ == "__main__":
    main()
