"""The sandbox: finds the strongest tier, and launches workers and programs on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from attrs import frozen
from sideband.workers import (
    Isolation,
    LaunchRequest,
    Probe,
    ProgramProcess,
    ProgramRequest,
    WorkerProcess,
    WorkerStartFailed,
    launch,
    launch_plain,
)

from ._errors import ZygoteFailed
from ._inside import LOCKDOWN
from ._machine._cgroups import Cgroups, find_cgroups
from ._machine._inspection import Machine, inspect_machine
from ._machine._interpreter import inspect_interpreter
from ._machine._processes import fresh_uid
from ._programs._launcher import ProgramLauncher
from ._programs._probe import ProgramPlatform
from ._workers._candidates import candidates, describe, gaps, remedy
from ._workers._forks import ForkedWorker, Zygote
from ._workers._plan import Variant, WorkerPlatform, open_to_everyone, own_folders, unconfined_plan, worker_orders
from ._workers._probe import proved_zygote

_TRIES = 2


@frozen
class _Finding:
    """The verified tier, and what a launch needs to reproduce it."""

    probe: Probe
    platform: WorkerPlatform | None = None
    cgroups: Cgroups | None = None
    variant: Variant | None = None


class SystemSandbox:
    """Isolates workers and programs with operating system features. Implements ``sideband.workers.ProgramSandbox``.

    A tier is claimed only after a probe worker, forked by the same zygote as all other workers, failed to break
    out of it.

    Args:
        machine: the features to use; detected if ``None``.
        python: the interpreter of the workers; the host's own if ``None``.

    Example:
        >>> sandbox = SystemSandbox()
        >>> probe = await sandbox.probe([Path("skills")])
        >>> probe.isolation.label
        'full'
        >>> await sandbox.close()
    """

    name = "sandbox"

    def __init__(self, machine: Machine | None = None, python: Path | None = None) -> None:
        self._machine = machine
        self._python = python or Path(sys.executable)
        self._finding: _Finding | None = None
        self._zygotes: dict[Variant, Zygote] = {}
        self._open: set[tuple[Path, ...]] = set()
        self._programs: ProgramLauncher | None = None
        self._proving = anyio.Lock()

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:
        """Return the strongest tier available here. Verified at the first call, and again after ``close``."""
        return (await self._find(folders)).probe

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker on the verified tier.

        Raises:
            WorkerStartFailed: if the system does not start it, or the zygote can no longer be isolated.
        """
        folders = own_folders(request)
        finding = await self._find(sorted({folder.parent for folder in folders}))
        if finding.platform is None or finding.variant is None:
            return await _launch_unconfined(request, self._python)
        variant = await self._fitting(finding.variant, tuple(folders))
        worker = await self._fork(finding.platform, finding.probe.isolation, variant, request)
        if finding.cgroups is not None:
            await worker.confine(finding.cgroups, request.limits)
        return worker

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a program on the tier of the workers, once a probe program has verified that tier.

        The program never runs on a weaker tier, because its effects cannot be undone.

        Raises:
            IsolationUnavailable: if the tier is not available for programs.
            WorkerStartFailed: if the system does not start it, or one of its places does not exist.
        """
        launcher = await self._program_launcher()
        return await (launch_plain(request) if launcher is None else launcher.launch(request))

    async def prove_programs(self) -> tuple[str, ...]:
        """Return the attempts at which a probe program failed, one sentence each; empty on the tier `none`.

        Raises:
            IsolationUnavailable: if the tier of the workers is not available for programs.
        """
        launcher = await self._program_launcher()
        return () if launcher is None else await launcher.proofs()

    async def _program_launcher(self) -> ProgramLauncher | None:
        finding = await self._find(())
        if finding.platform is None:
            return None
        if self._programs is None:
            found = finding.platform
            platform = ProgramPlatform(found.machine, found.python, found.interpreter, finding.cgroups)
            self._programs = ProgramLauncher(platform, finding.probe.isolation)
        return self._programs

    async def close(self) -> None:
        """Stop the zygotes. May be called more than once."""
        async with self._proving:
            while self._zygotes:
                await self._zygotes.popitem()[1].close()
            self._finding = None
            self._programs = None

    async def _find(self, folders: Sequence[Path]) -> _Finding:
        async with self._proving:
            if self._finding is None:
                self._finding = await self._strongest(tuple(folders))
            return self._finding

    async def _strongest(self, folders: tuple[Path, ...]) -> _Finding:
        machine, reason = (self._machine, "") if self._machine else inspect_machine()
        if machine is None:
            return _Finding(_no_isolation(*filter(None, (reason,))))
        try:
            interpreter = await inspect_interpreter(self._python)
        except (OSError, ValueError) as error:
            raise WorkerStartFailed(f"cannot use the interpreter {self._python}: {error}") from error
        platform = WorkerPlatform(machine, self._python, interpreter, folders)
        hints: list[str] = []
        as_root = os.geteuid() == 0
        for isolation, variant in candidates(as_root=as_root):
            proofs, problem = await self._prove(platform, isolation, variant)
            if not problem:
                cgroups = await anyio.to_thread.run_sync(find_cgroups)
                left = gaps(machine, variant, as_root=as_root, has_cgroups=cgroups is not None)
                return _Finding(Probe(isolation, proofs, left, tuple(dict.fromkeys(hints))), platform, cgroups, variant)
            hints.append(_hint(hints, f"{describe(variant)}: {problem}", remedy(variant, problem)))
        return _Finding(_no_isolation(*dict.fromkeys(hints)))

    async def _fitting(self, variant: Variant, folders: tuple[Path, ...]) -> Variant:
        """Return the verified variant, without its own user ID if that user could not read the skill."""
        if not variant.own_user or folders in self._open:
            return variant
        is_open = partial(open_to_everyone, folders, parents=not variant.namespaces)
        if not await anyio.to_thread.run_sync(is_open):
            return variant.without_own_user()
        # Cached: walking thousands of package files would dominate the launch, and these files do not change.
        self._open.add(folders)
        return variant

    async def _fork(
        self, platform: WorkerPlatform, isolation: Isolation, variant: Variant, request: LaunchRequest
    ) -> ForkedWorker:
        orders = worker_orders(variant, request, fresh_uid())
        for _ in range(_TRIES):
            zygote = await self._zygote(platform, isolation, variant)
            try:
                return await zygote.fork(request, orders)
            except ZygoteFailed as error:
                # Another process has killed the zygote; retry with a new one.
                problem = str(error)
        raise WorkerStartFailed(f"no worker could be started: {problem}", hint="try again")

    async def _zygote(self, platform: WorkerPlatform, isolation: Isolation, variant: Variant) -> Zygote:
        """Return a running, verified zygote of this variant."""
        async with self._proving:
            if variant not in self._zygotes or self._zygotes[variant].ended:
                _, problem = await self._prove(platform, isolation, variant)
                if problem:
                    hint = f"the tier is no longer available with {describe(variant)}{remedy(variant, problem)}"
                    raise WorkerStartFailed(f"no worker could be isolated: {problem}", hint=hint)
            return self._zygotes[variant]

    async def _prove(
        self, platform: WorkerPlatform, isolation: Isolation, variant: Variant
    ) -> tuple[tuple[str, ...], str]:
        """Start a zygote and keep it if its isolation holds. Return the proofs and the problem, empty if it holds."""
        if variant in self._zygotes:
            await self._zygotes.pop(variant).close()
        try:
            zygote, proofs = await proved_zygote(platform, isolation, variant)
        except ZygoteFailed as error:
            return (), str(error)
        self._zygotes[variant] = zygote
        return proofs, ""


def _no_isolation(*hints: str) -> Probe:
    return Probe(Isolation.NONE, gaps=("a worker can do everything that the host's user can do",), hints=hints)


def _hint(before: Sequence[str], problem: str, remedy: str) -> str:
    """Return the problem with its remedy, without the remedy if an earlier hint about another problem has it."""
    repeated = any(hint.endswith(remedy) and not hint.startswith(problem) for hint in before)
    return problem if repeated else f"{problem}{remedy}"


async def _launch_unconfined(request: LaunchRequest, python: Path) -> WorkerProcess:
    if sys.platform != "linux":
        return await launch(request, isolation=Isolation.NONE, python=python)
    plan = unconfined_plan(request.limits)
    return await launch(request, isolation=Isolation.NONE, python=python, lockdown=LOCKDOWN, plan=plan)
