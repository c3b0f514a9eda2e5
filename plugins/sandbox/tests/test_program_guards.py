"""Each layer of a program's isolation alone: which attempts it stops, and that they succeed without it."""

import base64
import os
import struct
from functools import partial
from pathlib import Path

import anyio
import pytest
from attrs import evolve
from sideband.workers import Isolation, IsolationUnavailable, ProgramRequest
from sideband_sandbox._errors import ProgramNotStarted
from sideband_sandbox._machine._seccomp import ALLOW, assemble
from sideband_sandbox._machine._tables import AARCH64, ARCHITECTURES, X86_64
from sideband_sandbox._programs import _launcher, _probe
from sideband_sandbox._programs._filter import NUMBERS, program_filter
from sideband_sandbox._programs._launcher import ProgramLauncher
from sideband_sandbox._programs._plan import ProgramVariant, program_plan

pytestmark = pytest.mark.anyio


AS_ROOT = os.geteuid() == 0
NAMESPACES = ProgramVariant(namespaces=True, user_namespace=not AS_ROOT)
BARE = ProgramVariant()


@pytest.fixture
def platform(proved_launchers):
    # A control group would hide the effect of resource limits.
    return evolve(proved_launchers["full"]._platform, cgroups=None)


@pytest.fixture
def report(platform, monkeypatch):
    """Return ``report(variant, change)``: runs the probe program with a changed plan, and returns its report."""

    async def report(variant, change=lambda plan: None):
        seen = {}

        def changed_plan(*arguments, **options):
            plan = program_plan(*arguments, **options)
            change(plan)
            return plan

        def keep(found, status, **_):
            seen.update(found["must_fail"], **status)
            return ()

        monkeypatch.setattr(_probe, "program_plan", changed_plan)
        monkeypatch.setattr(_probe, "_verdict", keep)
        isolation = Isolation.FULL if variant.namespaces else Isolation.NO_NAMESPACES
        await _probe.prove_programs(platform, isolation, variant)
        return seen

    return report


def without_landlock(plan):
    """Allow everything below the root; an empty ruleset is not possible."""
    plan["rules"] = [[plan["landlock"]["files"], "/"]]


def without_filter(machine, plan):
    code = assemble(machine.architecture, [], default=ALLOW).code
    plan["seccomp"] = {"code": base64.b64encode(code).decode(), "own_pid_at": []}


def both(*changes):
    return lambda plan: [change(plan) for change in changes]


LANDLOCK = (
    "read a file outside its places",
    "list a folder outside its places",
    "write to a read-only place",
    "write outside its places",
    "run a program that it has written in a place",
    "run a program that it has written in its temporary folder",
)


async def test_landlock_alone_stops_attempts(report):
    stopped, unstopped = await report(BARE), await report(BARE, without_landlock)
    assert [attempt for attempt in LANDLOCK if stopped[attempt] is None] == []
    assert [attempt for attempt in LANDLOCK if unstopped[attempt] is not None] == []


MOUNTS = (
    "write to a read-only place",
    "run a program that it has written in a place",
    "run a program that it has written in its temporary folder",
    "learn whether a file exists",
    "read a file outside its places",
    "write outside its places",
)


async def test_own_file_system_alone_stops_the_attempts(report):
    stopped = await report(NAMESPACES, without_landlock)
    assert [attempt for attempt in MOUNTS if stopped[attempt] is None] == []


async def test_own_network_alone_hides_abstract_sockets(report, machine):
    def without_scopes(plan):
        plan["landlock"]["scopes"] = 0

    bared = both(without_landlock, without_scopes, partial(without_filter, machine))
    attempt = "reach a service by its abstract name"
    assert (await report(NAMESPACES, bared))[attempt] is not None
    assert (await report(BARE, bared))[attempt] is None


FILTER = (
    "leave a set-user-ID file in a place",
    "open an IPv4 socket",
    "open a netlink socket",
    "reach a service by its path",
    "reach a service in a read-only place",
    "reach a service in a writable place",
    "create a namespace",
    "create a process in a namespace",
    "use the kernel's keyrings",
    "outlive the host",
    "read the memory of another process",
    "take a descriptor of another process",
)


async def test_filter_alone_stops_attempts(report, machine):
    stopped = await report(BARE, without_landlock)
    unstopped = await report(BARE, both(without_landlock, partial(without_filter, machine)))
    assert [attempt for attempt in FILTER if stopped[attempt] is None] == []
    remaining = [attempt for attempt in FILTER if unstopped[attempt] is not None]
    # The keeper is not dumpable, which also stops reads of its memory.
    assert remaining in ([], ["read the memory of another process"])


@pytest.mark.skipif(not AS_ROOT, reason="only root can give a program its own user")
async def test_process_limit_alone_stops_forks(report):
    own = ProgramVariant(namespaces=True, own_user=True, maps_ids=True)
    attempt = "start more processes than its limit"
    facts = _probe._facts

    def with_process_limit(*arguments):
        return {**facts(*arguments), "process_limit": True}

    _probe._facts = with_process_limit
    try:
        assert (await report(own))[attempt] is not None
        assert (await report(own, lambda plan: plan["limits"].pop("NPROC")))[attempt] is None
    finally:
        _probe._facts = facts


async def test_one_successful_attempt_rules_out_the_tier(platform, monkeypatch):
    def open_plan(*arguments, **options):
        plan = program_plan(*arguments, **options)
        without_landlock(plan)
        return plan

    monkeypatch.setattr(_probe, "program_plan", open_plan)
    with pytest.raises(ProgramNotStarted, match="could read a file outside its places"):
        await _probe.prove_programs(platform, Isolation.NO_NAMESPACES, BARE)


async def test_programs_are_refused_if_their_tier_is_unavailable(platform, tmp_path):
    broken = evolve(
        platform, machine=evolve(platform.machine, landlock=evolve(platform.machine.landlock, files=1 << 60))
    )
    launcher = ProgramLauncher(broken, Isolation.FULL)
    ran = tmp_path / "ran"
    for _ in range(2):
        with pytest.raises(IsolationUnavailable) as caught:
            await launcher.launch(ProgramRequest(("/bin/touch", str(ran)), Path("/tmp")))
        assert "cannot isolate programs" in caught.value.hint
    assert not ran.exists()


@pytest.mark.skipif(not AS_ROOT, reason="only root can map IDs")
async def test_program_keeps_the_host_user_if_ids_cannot_be_mapped(launcher, tmp_path, tier):
    from sideband.workers import Place

    def refuses(self, *arguments, **options):
        raise ProgramNotStarted("set the attributes of a mount: Invalid argument", step="prepare", number=22)

    started = []
    start = _launcher.start_program

    async def start_program(python, plan, *rest):
        started.append(plan["identity"])
        if plan["maps_ids"]:
            refuses(None)
        return await start(python, plan, *rest)

    _launcher.start_program = start_program
    try:
        request = ProgramRequest(("/bin/touch", str(tmp_path / "new")), Path("/tmp"), places=(Place(tmp_path, True),))
        program = await launcher.launch(request)
        with anyio.fail_after(20):
            assert await program.wait() == 0
        await program.close()
    finally:
        _launcher.start_program = start
    assert started[-1] is None
    assert (tmp_path / "new").stat().st_uid == 0


# Name, number on x86-64, number on aarch64: from ``asm/unistd_64.h``, like the table in ``test_tables.py``.
CALLS = """
    mount 165/40, umount2 166/39, chroot 161/51, fsopen 430/430, fsconfig 431/431, fsmount 432/432, fspick 433/433,
    unshare 272/97, setns 308/268, ptrace 101/117, process_vm_readv 310/270, process_vm_writev 311/271, kcmp 312/272,
    process_madvise 440/440, process_mrelease 448/448, pidfd_getfd 438/438, perf_event_open 298/241, bpf 321/280,
    userfaultfd 323/282, io_uring_setup 425/425, io_uring_enter 426/426, io_uring_register 427/427, keyctl 250/219,
    add_key 248/217, request_key 249/218, kexec_load 246/104, kexec_file_load 320/294, init_module 175/105,
    finit_module 313/273, delete_module 176/106, reboot 169/142, swapon 167/224, swapoff 168/225, acct 163/89,
    quotactl 179/60, quotactl_fd 443/443, settimeofday 164/170, clock_settime 227/112, clock_adjtime 305/266,
    adjtimex 159/171, sethostname 170/161, setdomainname 171/162, syslog 103/116, vhangup 153/58, iopl 172/-,
    ioperm 173/-, modify_ldt 154/-, fanotify_init 300/262, open_by_handle_at 304/265, move_pages 279/239,
    migrate_pages 256/238, personality 135/92, socket 41/198, socketpair 53/199, ioctl 16/29, prctl 157/167,
    clone 56/220, clone3 435/435, chmod 90/-, fchmod 91/52, fchmodat 268/53, fchmodat2 452/452, open 2/-, openat 257/56,
    openat2 437/437, creat 85/-, mknod 133/-, mknodat 259/33, execve 59/221, execveat 322/281, seccomp 317/277,
    shmget 29/194, shmat 30/196, shmctl 31/195, semget 64/190, semop 65/193, semtimedop 220/192, semctl 66/191,
    msgget 68/186, msgsnd 69/189, msgrcv 70/188, msgctl 71/187, mq_open 240/180, mq_unlink 241/181
"""


@pytest.mark.parametrize(("architecture", "position"), [(X86_64, 0), (AARCH64, 1)], ids=ARCHITECTURES)
async def test_numbers_match_the_kernel_headers(architecture, position):
    numbers = NUMBERS[architecture.machine]
    for entry in CALLS.replace("\n", " ").split(","):
        name, both_numbers = entry.split()
        number = both_numbers.split("/")[position]
        assert numbers.get(name) == (None if number == "-" else int(number)), name
    assert all(architecture.calls[name] == number for name, number in numbers.items() if name in architecture.calls)


@pytest.mark.parametrize("architecture", [X86_64, AARCH64], ids=ARCHITECTURES)
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("own_sockets", [False, True])
@pytest.mark.parametrize("own_ipc", [False, True])
async def test_filter_can_be_assembled_for_all_rights(architecture, network, own_sockets, own_ipc):
    program = program_filter(architecture, network=network, own_sockets=own_sockets, own_ipc=own_ipc)
    assert len(program) < 4096
    # The last instruction returns the default verdict, for calls without a rule.
    assert struct.unpack("=HBBI", program.code[-8:])[3] == ALLOW
