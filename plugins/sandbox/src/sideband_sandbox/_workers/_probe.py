"""Verifies a zygote: a probe worker of it tries to break out, and its status in ``/proc`` is checked."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from attrs import frozen
from sideband import SidebandError
from sideband.state import TemporaryFolder
from sideband.workers import Isolation, LaunchRequest, Probe, WorkerCall, WorkerLimits, WorkerPool, WorkerProcess

from .._errors import ZygoteFailed
from .._inside import WORKER_ATTEMPTS
from .._machine._processes import fresh_uid
from .._machine._temporary import make_folder, remove_leftovers
from .._proofs import PREFIX, kernel_status, problem_of, proofs_of
from ._forks import Zygote
from ._plan import Variant, WorkerPlatform, worker_orders, worker_plan, zygote_plan

_FILE = "attempts.py"

_SECONDS = 20.0


async def proved_zygote(
    platform: WorkerPlatform, isolation: Isolation, variant: Variant
) -> tuple[Zygote, tuple[str, ...]]:
    """Start a zygote, and fork a worker that tries to break out.

    Args:
        platform: the machine, interpreter and folders.
        isolation: the tier that the variant provides.
        variant: the way to isolate workers.

    Returns:
        The zygote, and the worker's attempts that failed, one sentence each.

    Raises:
        ZygoteFailed: if the zygote cannot be started, or an attempt of its worker succeeded.
    """
    stage = await anyio.to_thread.run_sync(_WorkerStage.make)
    try:
        plans = await anyio.to_thread.run_sync(
            lambda: (zygote_plan(platform, variant, stage.folder), worker_plan(platform, variant))
        )
        zygote = await Zygote.start(platform.python, isolation, *plans)
        try:
            return zygote, await _prove(zygote, variant, stage)
        except BaseException:
            await zygote.close()
            raise
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(stage.remove)


@frozen
class _WorkerStage:
    """A stand-in for a skill's snapshot, in a folder of its own that every user can read, like a real snapshot."""

    _temporary: TemporaryFolder

    @classmethod
    def make(cls) -> _WorkerStage:
        remove_leftovers(PREFIX)
        stage = cls(make_folder(PREFIX))
        stage.snapshot.mkdir()
        stage.open.mkdir()
        shutil.copyfile(WORKER_ATTEMPTS, stage.snapshot / _FILE)
        for path, mode in (
            (stage.folder, 0o755),
            (stage.snapshot, 0o755),
            (stage.snapshot / _FILE, 0o644),
            (stage.open, 0o777),
        ):
            path.chmod(mode)
        return stage

    @property
    def folder(self) -> Path:
        return self._temporary.path

    @property
    def snapshot(self) -> Path:
        return self.folder / "snapshot"

    @property
    def open(self) -> Path:
        """A world-writable folder."""
        return self.folder / "open"

    def remove(self) -> None:
        self._temporary.remove()


async def _prove(zygote: Zygote, variant: Variant, stage: _WorkerStage) -> tuple[str, ...]:
    limits = WorkerLimits()
    facts = {
        "host": os.getpid(),
        "snapshot": str(stage.snapshot),
        "file": _FILE,
        "open": str(stage.open),
        "namespaces": variant.namespaces,
        # The kernel does not limit the threads of root, not even in a user namespace.
        "thread_limit": variant.own_user or (variant.user_namespace and os.geteuid() != 0),
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
        raise ZygoteFailed("the probe worker is not visible in /proc") from error
    return _verdict(report, status, namespaces=variant.namespaces)


class _Launcher:
    """The sandbox of the probe worker. It launches from one zygote."""

    name = "probe"

    def __init__(self, zygote: Zygote, variant: Variant) -> None:
        self._zygote = zygote
        self._variant = variant
        self.pid = 0

    async def probe(self, folders: object = ()) -> Probe:  # noqa: ARG002 - part of the protocol
        return Probe(self._zygote.isolation)

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        try:
            worker = await self._zygote.fork(request, worker_orders(self._variant, request, fresh_uid()))
        except ZygoteFailed as error:
            raise SidebandError(str(error)) from error
        self.pid = worker.pid
        return worker

    async def close(self) -> None:
        """Do nothing; the caller owns the zygote."""


def _call(request: LaunchRequest, facts: Mapping[str, Any]) -> WorkerCall:
    return WorkerCall(
        id=secrets.token_hex(16),
        tool="probe.attempt",
        domain="probe",
        launch=request,
        module=str(request.snapshot / _FILE),
        function="attempt",
        arguments=facts,
        timeout=_SECONDS,
    )


def _verdict(report: Mapping[str, Any], status: Mapping[str, str], *, namespaces: bool) -> tuple[str, ...]:
    problem = problem_of("worker", report, status, namespaces=namespaces)
    if problem:
        raise ZygoteFailed(problem)
    return proofs_of(report)
