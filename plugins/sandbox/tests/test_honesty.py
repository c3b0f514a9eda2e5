"""Honesty: what is not proved is not claimed, and what happens is told."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import sideband_sandbox
from attrs import evolve
from sideband.workers import Isolation, LaunchRequest, WorkerStartFailed
from sideband_sandbox import SystemSandbox
from sideband_sandbox._errors import ZygoteFailed
from sideband_sandbox._machine._landlock import READ_DIRECTORY, READ_FILE
from sideband_sandbox._workers._probe import _verdict
from sideband_sandbox.plugin import sideband_sandboxes

pytestmark = pytest.mark.anyio


async def test_the_entry_point_gives_one_sandbox():
    assert [sandbox.name for sandbox in sideband_sandboxes()] == ["sandbox"]


async def test_on_another_system_it_claims_nothing_and_leaves_the_hint_to_the_host(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    probe = await SystemSandbox().probe()
    assert (probe.isolation, probe.hints) == (Isolation.NONE, ())
    assert probe.gaps


async def test_the_highest_tier_is_proved_here(sandbox):
    probe = await sandbox.probe()
    assert probe.isolation is Isolation.FULL, probe.hints
    assert len(probe.proofs) > 30
    assert "could not fork" in probe.proofs
    assert probe.gaps


async def test_a_proof_is_made_once_and_again_after_it_was_closed(sandbox):
    first = await sandbox.probe()
    assert await sandbox.probe() is first
    await sandbox.close()
    assert await sandbox.probe() is not first


async def test_an_interpreter_that_does_not_run_is_named():
    request = LaunchRequest(snapshot=Path("/"), sdk=Path("/"))
    with pytest.raises(WorkerStartFailed, match="/none/python"):
        await SystemSandbox(python=Path("/none/python")).launch(request)


async def claimed(machine):
    sandbox = SystemSandbox(machine)
    try:
        return await sandbox.probe()
    finally:
        await sandbox.close()


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
    assert any("PermissionError" in hint for hint in probe.hints), probe.hints


KERNEL = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapAmb": "0" * 16}
REPORT = {"must_fail": {"fork": "PermissionError: no"}, "must_work": {"read its own folder": None}}


@pytest.mark.parametrize(
    ("report", "kernel", "problem"),
    [
        ({"must_fail": {"fork": None, "connect": "OSError"}}, {}, "a worker could fork"),
        ({"must_work": {"think": "OSError: no"}}, {}, r"a worker could not think \(OSError: no\)"),
        *(({}, {name: "7"}, f"the kernel says of the worker: {name} is 7") for name in KERNEL),
    ],
)
async def test_one_thing_that_does_not_hold_is_enough(report, kernel, problem):
    assert _verdict(REPORT, KERNEL) == ("could not fork",)
    with pytest.raises(ZygoteFailed, match=problem):
        _verdict({**REPORT, **report}, {**KERNEL, **kernel})


async def test_where_the_root_can_not_be_changed_the_lower_tier_is_claimed_with_the_reason(machine):
    probe = await claimed(evolve(machine, architecture=evolve(machine.architecture, pivot_root=10_000)))
    assert probe.isolation is Isolation.NO_NAMESPACES
    assert any("pivot_root" in hint for hint in probe.hints)
    assert any("stat" in gap for gap in probe.gaps)


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
    sandbox = SystemSandbox(python=Path(sys.argv[2]))
    try:
        return await sandbox.probe()
    finally:
        await sandbox.close()
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
