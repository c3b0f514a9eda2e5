"""Proves a zygote: a throw-away worker of it tries to break out, and the kernel is asked what that has become."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import anyio
import anyio.to_thread
from attrs import frozen
from sideband import SidebandError
from sideband.workers import Isolation, LaunchRequest, Probe, WorkerCall, WorkerLimits, WorkerPool, WorkerProcess

from ._forks import Zygote, ZygoteFailed
from ._landlock import MINIMUM_ABI, landlock
from ._plan import Ground, Machine, Variant, worker_orders, worker_plan, zygote_plan
from ._tables import ARCHITECTURES

__all__ = ["EXPECTED_STATUS", "PREFIX", "fresh_uid", "inspect_machine", "kernel_status", "names", "proved_zygote"]

_ATTEMPTS = Path(__file__).with_name("_attempts.py")
_FILE = "attempts.py"
PREFIX = "sideband-probe-"

# No known allocator of user ids hands these out (the kernel's range for them ends at 2³² - 2).
_FIRST_UID = 0x70000000
_UID_COUNT = 0x0FFFFFFE

_SECONDS = 20.0
EXPECTED_STATUS = {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapAmb": "0" * 16}


def inspect_machine() -> tuple[Machine | None, str]:
    """What can be used here, or the reason why nothing can: none on a system that another sandbox is made for."""
    if sys.platform != "linux":
        return None, ""
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


async def proved_zygote(ground: Ground, isolation: Isolation, variant: Variant) -> tuple[Zygote, tuple[str, ...]]:
    """Start a zygote, have it make a worker, and the worker try what it must not be able to do.

    Args:
        ground: what there is.
        isolation: the tier that the variant is worth.
        variant: how workers are locked down.

    Returns:
        The zygote, and what the worker tried in vain, one sentence each.

    Raises:
        ZygoteFailed: it could not be started, or its worker could do something; says what.
    """
    stage = await anyio.to_thread.run_sync(_Stage.make)
    try:
        plans = await anyio.to_thread.run_sync(
            lambda: (zygote_plan(ground, variant, stage.folder), worker_plan(ground, variant))
        )
        zygote = await Zygote.start(ground.python, isolation, *plans)
        try:
            return zygote, await _prove(zygote, variant, stage)
        except BaseException:
            await zygote.close()
            raise
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(stage.remove)


@frozen
class _Stage:
    """A stand-in for a skill's snapshot, in a folder of its own that every user can read, as with a real one."""

    folder: Path

    @classmethod
    def make(cls) -> _Stage:
        _remove_leftovers()
        stage = cls(Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")))
        stage.snapshot.mkdir()
        stage.open.mkdir()
        shutil.copyfile(_ATTEMPTS, stage.snapshot / _FILE)
        for path, mode in (
            (stage.folder, 0o755),
            (stage.snapshot, 0o755),
            (stage.snapshot / _FILE, 0o644),
            (stage.open, 0o777),
        ):
            path.chmod(mode)
        return stage

    @property
    def snapshot(self) -> Path:
        return self.folder / "snapshot"

    @property
    def open(self) -> Path:
        """Where everybody may write."""
        return self.folder / "open"

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _remove_leftovers() -> None:
    """Remove what hosts that were killed meanwhile have left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        host = path.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if host.isdigit() and path.lstat().st_uid == os.geteuid() and not Path("/proc", host).exists():
                shutil.rmtree(path, ignore_errors=True)


async def _prove(zygote: Zygote, variant: Variant, stage: _Stage) -> tuple[str, ...]:
    limits = WorkerLimits()
    facts = {
        "host": os.getpid(),
        "snapshot": str(stage.snapshot),
        "file": _FILE,
        "open": str(stage.open),
        "namespaces": variant.namespaces,
        "thread_limit": variant.own_user or variant.user_namespace,
        "threads": limits.threads,
    }
    request = LaunchRequest(snapshot=stage.snapshot, sdk=stage.snapshot, limits=limits)
    launcher = _Launcher(zygote, variant)
    try:
        async with WorkerPool(launcher, start_timeout=_SECONDS) as pool:
            report = (await pool.call(_call(request, facts))).value
            status = await anyio.to_thread.run_sync(kernel_status, launcher.pid)
    except SidebandError as error:
        raise ZygoteFailed(error.message) from error
    except (OSError, IndexError) as error:
        raise ZygoteFailed("the kernel does not show the throw-away worker in /proc") from error
    return _verdict(report, status)


class _Launcher:
    """The sandbox of the throw-away worker: this zygote and no other."""

    name = "probe"

    def __init__(self, zygote: Zygote, variant: Variant) -> None:
        self._zygote = zygote
        self._variant = variant
        self.pid = 0

    async def probe(self, folders: object = ()) -> Probe:  # noqa: ARG002 - it is what is being probed
        return Probe(self._zygote.isolation)

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        try:
            worker = await self._zygote.fork(request, worker_orders(self._variant, request, fresh_uid()))
        except ZygoteFailed as error:
            raise SidebandError(str(error)) from error
        self.pid = worker.pid
        return worker

    async def close(self) -> None:
        """The zygote is somebody else's."""


def _call(request: LaunchRequest, facts: Mapping[str, Any]) -> WorkerCall:
    return WorkerCall(
        id=secrets.token_hex(16),
        tool="probe.attempt",
        domain="probe",
        launch=request,
        module=str(request.snapshot / _FILE),
        function="attempt",
        arguments=facts,
        dispatch=_no_dispatch,
        timeout=_SECONDS,
    )


async def _no_dispatch(dispatch: str, op: str, params: Mapping[str, Any]) -> NoReturn:  # noqa: ARG001 - asks nothing
    raise AssertionError("the throw-away worker asks for nothing")


def kernel_status(pid: int) -> dict[str, str]:
    """What the kernel itself says about a process; nothing that the process says could change it."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {name: status.get(name, "") for name in EXPECTED_STATUS}


def _verdict(report: dict[str, Any], status: dict[str, str]) -> tuple[str, ...]:
    wrong = [f"{name} is {status[name]}" for name, expected in EXPECTED_STATUS.items() if status[name] != expected]
    if wrong:
        raise ZygoteFailed(f"the kernel says of the worker: {', '.join(wrong)}")
    succeeded = names(report["must_fail"], succeeded=True)
    if succeeded:
        raise ZygoteFailed(f"a worker could {', '.join(succeeded)}")
    broken = names(report["must_work"], succeeded=False)
    if broken:
        raise ZygoteFailed(f"a worker could not {', '.join(broken)} ({report['must_work'][broken[0]]})")
    return tuple(f"could not {name}" for name in names(report["must_fail"], succeeded=False))


def names(outcomes: dict[str, str | None], *, succeeded: bool) -> list[str]:
    """The attempts that succeeded, or those that did not."""
    return [name for name, outcome in outcomes.items() if (outcome is None) == succeeded]
