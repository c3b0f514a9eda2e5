"""Proves a zygote: a throw-away worker of it tries to break out, and the kernel is asked what that has become."""

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
from sideband.workers import Isolation, LaunchRequest, Probe, WorkerCall, WorkerLimits, WorkerPool, WorkerProcess

from .._errors import ZygoteFailed
from .._inside import WORKER_ATTEMPTS
from .._machine._processes import fresh_uid
from .._machine._temporary import make_folder, remove_leftovers
from .._proofs import PREFIX, kernel_status, problem_of, proofs_of
from ._forks import Zygote
from ._plan import Ground, Variant, worker_orders, worker_plan, zygote_plan

_FILE = "attempts.py"

_SECONDS = 20.0


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
    stage = await anyio.to_thread.run_sync(_WorkerStage.make)
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
class _WorkerStage:
    """A stand-in for a skill's snapshot, in a folder of its own that every user can read, as with a real one."""

    folder: Path

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
    def snapshot(self) -> Path:
        return self.folder / "snapshot"

    @property
    def open(self) -> Path:
        """Where everybody may write."""
        return self.folder / "open"

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


async def _prove(zygote: Zygote, variant: Variant, stage: _WorkerStage) -> tuple[str, ...]:
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
        timeout=_SECONDS,
    )


def _verdict(report: Mapping[str, Any], status: Mapping[str, str]) -> tuple[str, ...]:
    problem = problem_of("worker", report, status)
    if problem:
        raise ZygoteFailed(problem)
    return proofs_of(report)
