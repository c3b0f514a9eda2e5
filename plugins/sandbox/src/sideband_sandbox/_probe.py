"""Finds the strongest way to lock a worker down that a throw-away worker has just proved."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from attrs import frozen
from sideband.workers import Isolation, Probe, WorkerLimits

from ._landlock import MINIMUM_ABI, landlock
from ._paths import Interpreter, ReadablePath, interpreter_paths
from ._plan import Machine, Variant, confined_plan
from ._tables import ARCHITECTURES

__all__ = ["LOCKDOWN", "Finding", "fresh_uid", "inspect_machine", "prove", "try_variant"]

LOCKDOWN = Path(__file__).with_name("_lockdown.py")
_ATTEMPTS = Path(__file__).with_name("_attempts.py")

# No known allocator of user ids hands these out (the kernel's range for them ends at 2³² - 2).
_FIRST_UID = 0x70000000
_UID_COUNT = 0x0FFFFFFE

_SECONDS = 20.0
_LONGEST_REPORT = 1 << 20
_EXPECTED_STATUS = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapAmb": "0" * 16}


@frozen
class Finding:
    """What was proved, and what launching needs to do the same again.

    Args:
        probe: the tier with its proofs, gaps and hints.
        machine: ``None`` where nothing can be had.
        variant: the way that was proved.
    """

    probe: Probe
    machine: Machine | None = None
    variant: Variant | None = None


def inspect_machine() -> tuple[Machine | None, str]:
    """What can be used here, or the reason why nothing can."""
    if sys.platform != "linux":
        return None, f"this sandbox works on Linux; this is {platform.system()}"
    architecture = ARCHITECTURES.get(platform.machine())
    if architecture is None:
        return None, f"there is no filter of system calls for the architecture {platform.machine()}"
    offered = landlock()
    if offered is None:
        return None, "the kernel has no Landlock, or it is not switched on (boot with landlock in lsm=)"
    if offered.abi < MINIMUM_ABI:
        return None, f"the kernel's Landlock is version {offered.abi}; {MINIMUM_ABI} is needed (Linux 6.2)"
    return Machine(architecture, offered), ""


def fresh_uid() -> int:
    """A user id that nothing else has, with odds of one in a quarter of a billion."""
    return _FIRST_UID + secrets.randbelow(_UID_COUNT)


async def prove(machine: Machine, python: Path, interpreter: Interpreter, *, as_root: bool) -> Finding:
    """Try the ways from the strongest on; the first that holds is the finding."""
    hints: list[str] = []
    for isolation, variant in _candidates(as_root=as_root):
        proofs, problem = await try_variant(machine, variant, python, interpreter)
        if problem:
            hints.append(f"{_describe(variant)}: {problem}{_remedy(variant)}")
            continue
        probe = Probe(isolation, proofs, _gaps(machine, variant, as_root=as_root), tuple(hints))
        return Finding(probe, machine, variant)
    return Finding(Probe(Isolation.NONE, gaps=(_NOTHING,), hints=tuple(hints)), machine)


_NOTHING = "a worker can do all that the host's user can do"


def _candidates(*, as_root: bool) -> list[tuple[Isolation, Variant]]:
    if as_root:
        return [
            (Isolation.FULL, Variant(namespaces=True, own_user=True)),
            (Isolation.FULL, Variant(namespaces=True)),
            (Isolation.NO_NAMESPACES, Variant(own_user=True)),
            (Isolation.NO_NAMESPACES, Variant()),
        ]
    return [
        (Isolation.FULL, Variant(namespaces=True, user_namespace=True)),
        (Isolation.NO_NAMESPACES, Variant(user_namespace=True)),
        (Isolation.NO_NAMESPACES, Variant()),
    ]


def _describe(variant: Variant) -> str:
    if variant.namespaces:
        return "own namespaces"
    if variant.own_user:
        return "a user id of its own"
    if variant.user_namespace:
        return "a user namespace of its own"
    return "Landlock and a filter of system calls"


def _remedy(variant: Variant) -> str:
    if variant.user_namespace:
        return "; allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces)"
    if variant.namespaces:
        return "; the host needs the right to make namespaces (CAP_SYS_ADMIN in a container)"
    if variant.own_user:
        return "; the interpreter and its folders would have to be readable by every user"
    return ""


def _gaps(machine: Machine, variant: Variant, *, as_root: bool) -> tuple[str, ...]:
    gaps = ["bugs of the kernel and side channels of the processor are not stopped by any of this"]
    if not variant.namespaces:
        gaps.append("a worker can learn whether a path exists, and its size, owner and times (stat)")
        gaps.append("a worker can list the names, not the contents, of the interpreter's own site-packages")
    if not machine.landlock.scopes:
        gaps.append("signals to others are stopped by the filter of system calls alone (Landlock before version 6)")
    if as_root and not variant.own_user:
        gaps.append("workers keep the user id of root, without any capability; the kernel does not limit their threads")
    elif as_root:
        gaps.append("a skill whose snapshot only root may read keeps root's user id, without any capability")
    elif not variant.user_namespace:
        gaps.append("the limit of threads counts all processes of the user")
    return tuple(gaps)


async def try_variant(
    machine: Machine, variant: Variant, python: Path, interpreter: Interpreter
) -> tuple[tuple[str, ...], str]:
    """Run the throw-away worker.

    Returns:
        What it tried in vain, one sentence each, and what is wrong with the variant; an empty text if nothing is.
    """
    with tempfile.TemporaryDirectory(prefix="sideband-probe-") as name:
        snapshot = await anyio.to_thread.run_sync(_make_snapshot, Path(name))
        facts = await anyio.to_thread.run_sync(_facts, machine, variant, interpreter, snapshot)
        return await _run(python, variant, facts)


def _make_snapshot(folder: Path) -> Path:
    """A stand-in for a skill, readable for every user as a real one is."""
    folder.chmod(0o755)
    snapshot = folder / "snapshot"
    snapshot.mkdir(mode=0o755)
    (snapshot / "skill.py").write_text("answer = 42\n", encoding="ascii")
    (snapshot / "skill.py").chmod(0o644)
    everybodys = folder / "open"
    everybodys.mkdir()
    everybodys.chmod(0o777)
    return snapshot


def _facts(machine: Machine, variant: Variant, interpreter: Interpreter, snapshot: Path) -> dict[str, Any]:
    limits = WorkerLimits()
    links = [snapshot, *(Path(way) for way in interpreter.ways)]
    plan = confined_plan(
        machine,
        variant,
        [*interpreter_paths(interpreter), ReadablePath(str(snapshot.resolve()))],
        limits=limits,
        links=links,
        staging=snapshot,
        uid=fresh_uid(),
    )
    return {
        "lockdown": str(LOCKDOWN),
        "plan": plan,
        "host": os.getpid(),
        "snapshot": str(snapshot),
        "file": "skill.py",
        "open": str(snapshot.parent / "open"),
        "namespaces": variant.namespaces,
        "thread_limit": variant.own_user or variant.user_namespace,
        "threads": limits.threads,
    }


async def _run(python: Path, variant: Variant, facts: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    command = [str(python), "-I", "-S", "-B", str(_ATTEMPTS), json.dumps(facts)]
    environment = {"MALLOC_ARENA_MAX": "2"}
    async with await anyio.open_process(command, env=environment, cwd="/", stderr=subprocess.PIPE) as process:
        try:
            with anyio.fail_after(_SECONDS):
                return await _question(process, variant)
        except TimeoutError:
            return (), f"the throw-away worker did not answer within {_SECONDS:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


async def _question(process: anyio.abc.Process, variant: Variant) -> tuple[tuple[str, ...], str]:
    assert process.stdout is not None  # noqa: S101 - open_process makes a pipe
    try:
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", _LONGEST_REPORT)
    except anyio.IncompleteRead:
        return (), await _last_words(process)
    try:
        status = await anyio.to_thread.run_sync(_kernel_status, process.pid, variant)
    except (OSError, IndexError):
        return (), "the kernel does not show the throw-away worker in /proc"
    return _verdict(json.loads(line), status)


async def _last_words(process: anyio.abc.Process) -> str:
    assert process.stderr is not None  # noqa: S101 - open_process makes a pipe
    said = b"".join([chunk async for chunk in process.stderr]).decode(errors="replace").strip()
    code = await process.wait()
    return said[-300:] or f"the throw-away worker ended with code {code}"


def _kernel_status(pid: int, variant: Variant) -> dict[str, str]:
    """What the kernel itself says about the worker; nothing that the worker says could change it."""
    if variant.namespaces:
        pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {name: status.get(name, "") for name in _EXPECTED_STATUS}


def _verdict(report: dict[str, Any], status: dict[str, str]) -> tuple[tuple[str, ...], str]:
    wrong = [f"{name} is {status[name]}" for name, expected in _EXPECTED_STATUS.items() if status[name] != expected]
    if wrong:
        return (), f"the kernel says of the worker: {', '.join(wrong)}"
    succeeded = _names(report["must_fail"], succeeded=True)
    if succeeded:
        return (), f"a worker could {', '.join(succeeded)}"
    broken = _names(report["must_work"], succeeded=False)
    if broken:
        return (), f"a worker could not {', '.join(broken)} ({report['must_work'][broken[0]]})"
    return tuple(f"could not {name}" for name in _names(report["must_fail"], succeeded=False)), ""


def _names(outcomes: dict[str, str | None], *, succeeded: bool) -> list[str]:
    return [name for name, outcome in outcomes.items() if (outcome is None) == succeeded]
