"""The sandbox itself: keeps a zygote that has been proved, and has it make the workers."""

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
from ._programs._probe import ProgramGround
from ._workers._candidates import candidates, describe, gaps, remedy
from ._workers._forks import ForkedWorker, Zygote
from ._workers._plan import Ground, Variant, open_to_everyone, own_folders, unconfined_plan, worker_orders
from ._workers._probe import proved_zygote

_TRIES = 2


@frozen
class _Finding:
    """What was proved, and what launching needs to do the same again."""

    probe: Probe
    ground: Ground | None = None
    cgroups: Cgroups | None = None
    variant: Variant | None = None


class SystemSandbox:
    """Isolates workers by the operating system's own means. A ``Sandbox``, as ``sideband.workers`` describes it.

    What it claims, a throw-away worker has proved that was made by the very zygote which makes the others.

    Args:
        machine: what to use instead of what is found here.
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
        """Which tier can be had here. Proved at the first call, and again after ``close``."""
        return (await self._find(folders)).probe

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker on the tier that was proved.

        Raises:
            WorkerStartFailed: the system did not start it, or what was proved does not fit this skill's folders.
        """
        folders = own_folders(request)
        finding = await self._find(sorted({folder.parent for folder in folders}))
        if finding.ground is None or finding.variant is None:
            return await _launch_unconfined(request, self._python)
        variant = await self._fitting(finding.variant, tuple(folders))
        worker = await self._fork(finding.ground, finding.probe.isolation, variant, request)
        if finding.cgroups is not None:
            await worker.confine(finding.cgroups, request.limits)
        return worker

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a command on the tier that was proved for workers, after a throw-away command has proved it too.

        It never runs on a weaker one: what has run can't be taken back.

        Raises:
            IsolationUnavailable: the tier can't be had for commands.
            WorkerStartFailed: the system did not start it, or one of its places is not there.
        """
        commands = await self._programs_of_tier()
        return await (launch_plain(request) if commands is None else commands.launch(request))

    async def prove_programs(self) -> tuple[str, ...]:
        """What a throw-away command tried in vain, one sentence each; nothing on the tier `none`.

        Raises:
            IsolationUnavailable: the tier of workers can't be had for commands.
        """
        commands = await self._programs_of_tier()
        return () if commands is None else await commands.proofs()

    async def _programs_of_tier(self) -> ProgramLauncher | None:
        finding = await self._find(())
        if finding.ground is None:
            return None
        if self._programs is None:
            ground = finding.ground
            known = ProgramGround(ground.machine, ground.python, ground.interpreter, finding.cgroups)
            self._programs = ProgramLauncher(known, finding.probe.isolation)
        return self._programs

    async def close(self) -> None:
        """End the zygotes. Can be called again."""
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
            return _Finding(_nothing(*filter(None, (reason,))))
        try:
            interpreter = await inspect_interpreter(self._python)
        except (OSError, ValueError) as error:
            raise WorkerStartFailed(f"the interpreter {self._python} can't be used: {error}") from error
        ground = Ground(machine, self._python, interpreter, folders)
        hints: list[str] = []
        as_root = os.geteuid() == 0
        for isolation, variant in candidates(as_root=as_root):
            proofs, problem = await self._prove(ground, isolation, variant)
            if not problem:
                cgroups = await anyio.to_thread.run_sync(find_cgroups)
                left = gaps(machine, variant, as_root=as_root, has_cgroups=cgroups is not None)
                return _Finding(Probe(isolation, proofs, left, tuple(dict.fromkeys(hints))), ground, cgroups, variant)
            hints.append(_hint(hints, f"{describe(variant)}: {problem}", remedy(variant, problem)))
        return _Finding(_nothing(*dict.fromkeys(hints)))

    async def _fitting(self, variant: Variant, folders: tuple[Path, ...]) -> Variant:
        """The proved variant, or the same without an own user id if that user could not read the skill."""
        if not variant.own_user or folders in self._open:
            return variant
        looked = partial(open_to_everyone, folders, parents=not variant.namespaces)
        if not await anyio.to_thread.run_sync(looked):
            return variant.without_own_user()
        # Looking through thousands of files of packages would take longer than all the rest, and they don't change.
        self._open.add(folders)
        return variant

    async def _fork(
        self, ground: Ground, isolation: Isolation, variant: Variant, request: LaunchRequest
    ) -> ForkedWorker:
        orders = worker_orders(variant, request, fresh_uid())
        for _ in range(_TRIES):
            zygote = await self._zygote(ground, isolation, variant)
            try:
                return await zygote.fork(request, orders)
            except ZygoteFailed as error:
                # It has been ended by somebody; the next one may live.
                problem = str(error)
        raise WorkerStartFailed(f"no worker could be started: {problem}", hint="try again")

    async def _zygote(self, ground: Ground, isolation: Isolation, variant: Variant) -> Zygote:
        """The zygote of this variant, alive and proved."""
        async with self._proving:
            if variant not in self._zygotes or self._zygotes[variant].ended:
                _, problem = await self._prove(ground, isolation, variant)
                if problem:
                    hint = f"it can be had no more with {describe(variant)}{remedy(variant, problem)}"
                    raise WorkerStartFailed(f"no worker could be isolated: {problem}", hint=hint)
            return self._zygotes[variant]

    async def _prove(self, ground: Ground, isolation: Isolation, variant: Variant) -> tuple[tuple[str, ...], str]:
        """Start a zygote and keep it if it holds. Returns the proofs, and what is wrong; nothing if it holds."""
        if variant in self._zygotes:
            await self._zygotes.pop(variant).close()
        try:
            zygote, proofs = await proved_zygote(ground, isolation, variant)
        except ZygoteFailed as error:
            return (), str(error)
        self._zygotes[variant] = zygote
        return proofs, ""


def _nothing(*hints: str) -> Probe:
    return Probe(Isolation.NONE, gaps=("a worker can do all that the host's user can do",), hints=hints)


def _hint(before: Sequence[str], problem: str, remedy: str) -> str:
    """What is wrong and what to change; the latter only if no hint before, about something else, says so already."""
    said = any(hint.endswith(remedy) and not hint.startswith(problem) for hint in before)
    return problem if said else f"{problem}{remedy}"


async def _launch_unconfined(request: LaunchRequest, python: Path) -> WorkerProcess:
    if sys.platform != "linux":
        return await launch(request, isolation=Isolation.NONE, python=python)
    plan = unconfined_plan(request.limits)
    return await launch(request, isolation=Isolation.NONE, python=python, lockdown=LOCKDOWN, plan=plan)
