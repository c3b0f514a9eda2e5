"""The probe: a tier is claimed only if it was verified, and the reason for a lower tier is reported."""

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

pytestmark = pytest.mark.anyio


async def test_other_system_has_no_tier_and_no_hint(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    probe = await SystemSandbox().probe()
    assert (probe.isolation, probe.hints) == (Isolation.NONE, ())
    assert probe.gaps


async def test_highest_tier_is_verified_here(sandbox):
    probe = await sandbox.probe()
    assert probe.isolation is Isolation.FULL, probe.hints
    assert len(probe.proofs) > 30
    assert "could not fork" in probe.proofs
    assert probe.gaps


async def test_probe_is_cached_until_close(sandbox):
    first = await sandbox.probe()
    assert await sandbox.probe() is first
    await sandbox.close()
    assert await sandbox.probe() is not first


async def test_missing_interpreter_is_named_in_the_error():
    request = LaunchRequest(snapshot=Path("/"), sdk=Path("/"))
    with pytest.raises(WorkerStartFailed, match="/none/python"):
        await SystemSandbox(python=Path("/none/python")).launch(request)


async def test_missing_temporary_folder_is_an_error_with_a_remedy(monkeypatch):
    # As in a container whose file systems are all read-only.
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: ["/proc"])
    with pytest.raises(WorkerStartFailed, match="no temporary folder") as caught:
        await SystemSandbox().probe()
    assert "--tmpfs /tmp" in caught.value.hint


async def claimed(machine):
    sandbox = SystemSandbox(machine)
    try:
        return await sandbox.probe()
    finally:
        await sandbox.close()


async def test_step_refused_by_the_kernel_rules_out_every_tier(machine):
    probe = await claimed(evolve(machine, landlock=evolve(machine.landlock, files=1 << 60)))
    assert probe.isolation is Isolation.NONE
    assert probe.proofs == ()
    assert all("landlock" in hint for hint in probe.hints)


async def test_landlock_without_write_rights_rules_out_the_lower_tier(machine):
    only_reading = evolve(machine.landlock, files=READ_FILE | READ_DIRECTORY)
    no_namespaces = evolve(machine.architecture, pivot_root=10_000)
    probe = await claimed(evolve(machine, landlock=only_reading, architecture=no_namespaces))
    assert probe.isolation is Isolation.NONE
    assert any("write to its own folder" in hint for hint in probe.hints), probe.hints


async def test_filter_that_allows_sockets_rules_out_every_tier(machine):
    socket_call = {"x86_64": 41, "aarch64": 198}[machine.architecture.machine]
    calls = {**machine.architecture.calls, "sysinfo": socket_call}
    probe = await claimed(evolve(machine, architecture=evolve(machine.architecture, calls=calls)))
    assert probe.isolation is Isolation.NONE
    assert any("open an IPv4 socket" in hint for hint in probe.hints)


async def test_filter_that_breaks_ordinary_work_rules_out_every_tier(machine):
    calls = {name: number for name, number in machine.architecture.calls.items() if name != "epoll_create1"}
    probe = await claimed(evolve(machine, architecture=evolve(machine.architecture, calls=calls)))
    assert probe.isolation is Isolation.NONE
    assert any("PermissionError" in hint for hint in probe.hints), probe.hints


KERNEL = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapAmb": "0" * 16}
OWN_NAMESPACE = {"NSpid": "4321\t2"}
REPORT = {"must_fail": {"fork": "PermissionError: no"}, "must_work": {"read its own folder": None}}


@pytest.mark.parametrize(
    ("report", "kernel", "problem"),
    [
        ({"must_fail": {"fork": None, "connect": "OSError"}}, {}, "a worker could fork"),
        ({"must_work": {"think": "OSError: no"}}, {}, r"a worker could not think \(OSError: no\)"),
        *(({}, {name: "7"}, f"the kernel reports for the worker: {name} is 7") for name in KERNEL),
        ({}, {"NSpid": "4321"}, "it is in the host's process namespace"),
        ({}, {"NSpid": ""}, "it is in the host's process namespace"),
    ],
)
async def test_single_problem_fails_the_verification(report, kernel, problem):
    status = {**KERNEL, **OWN_NAMESPACE}
    assert _verdict(REPORT, status, namespaces=True) == ("could not fork",)
    with pytest.raises(ZygoteFailed, match=problem):
        _verdict({**REPORT, **report}, {**status, **kernel}, namespaces=True)


async def test_lower_tier_needs_no_process_namespace():
    assert _verdict(REPORT, {**KERNEL, "NSpid": "4321"}, namespaces=False) == ("could not fork",)


async def test_failing_pivot_root_leads_to_the_lower_tier_with_a_hint(machine):
    probe = await claimed(evolve(machine, architecture=evolve(machine.architecture, pivot_root=10_000)))
    assert probe.isolation is Isolation.NO_NAMESPACES
    assert any("pivot_root" in hint for hint in probe.hints)
    assert any("stat" in gap for gap in probe.gaps)


# The host as an ordinary user. All imports come first, because that user may not be able to read the checkout.
AS_USER = """
import asyncio, concurrent.futures.thread, encodings.ascii, encodings.idna, json, os, random, sys, tempfile
import anyio, anyio._backends._asyncio, trio, anyio._backends._trio
import sideband.workers, sideband.workers._launcher, sideband.workers.runtime
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


@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests already run as an ordinary user")
async def test_ordinary_user_gets_the_highest_tier(area, open_python):
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
