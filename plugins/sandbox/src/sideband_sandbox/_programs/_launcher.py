"""Launches programs on the tier of the workers, once a probe program has verified that tier for programs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from attrs import evolve
from sideband.workers import Isolation, IsolationUnavailable, ProgramRequest, WorkerStartFailed

from .._errors import ProgramNotStarted
from .._machine._processes import fresh_uid
from .._machine._temporary import remove_leftovers
from ._plan import ProgramVariant, program_plan
from ._probe import ProgramPlatform, prove_programs
from ._process import PREFIX, IsolatedProgram, own_folder, start_program, temporary_folder

_TEMPORARY = Path("/tmp")  # noqa: S108 - stands for the program's own temporary folder


class ProgramLauncher:
    """Launches the programs of one host, all on one tier.

    Args:
        platform: the machine and the interpreter.
        isolation: the tier; programs run on this tier or not at all.
    """

    def __init__(self, platform: ProgramPlatform, isolation: Isolation) -> None:
        self._platform = platform
        self._isolation = isolation
        self._proving = anyio.Lock()
        self._variant: ProgramVariant | None = None
        self._proofs: tuple[str, ...] = ()
        self._problems: list[str] = []

    async def proofs(self) -> tuple[str, ...]:
        """Return the attempts at which a probe program failed.

        Raises:
            IsolationUnavailable: if the tier is not available for programs.
        """
        await self._proved()
        return self._proofs

    async def launch(self, request: ProgramRequest) -> IsolatedProgram:
        """Start a program.

        Raises:
            IsolationUnavailable: if the tier is not available for programs.
            WorkerStartFailed: if the program cannot be started.
        """
        proved = await self._proved()
        for variant in _fitting(proved, request):
            try:
                return await self._start(variant, request)
            except ProgramNotStarted as error:
                failure = error
                if not variant.own_user:
                    break
        raise WorkerStartFailed(_message(request, failure), hint=_hint(failure)) from failure

    async def _proved(self) -> ProgramVariant:
        async with self._proving:
            if self._variant is None and not self._problems:
                await anyio.to_thread.run_sync(remove_leftovers, PREFIX)
                await self._find_variant()
        if self._variant is None:
            raise IsolationUnavailable(self._isolation.label, Isolation.NONE.label, tuple(self._problems))
        return self._variant

    async def _find_variant(self) -> None:
        for variant in _candidates(self._isolation, as_root=os.geteuid() == 0):
            try:
                self._proofs = await prove_programs(self._platform, self._isolation, variant)
            except (ProgramNotStarted, WorkerStartFailed) as error:
                self._problems.append(f"cannot isolate programs: {error}")
            else:
                self._variant = variant
                return

    async def _start(self, variant: ProgramVariant, request: ProgramRequest) -> IsolatedProgram:
        uid = fresh_uid()
        platform = self._platform
        async with temporary_folder(uid if variant.own_user and not variant.namespaces else None) as temporary:
            own = own_folder(temporary)
            inside = request if request.folder != _TEMPORARY else evolve(request, folder=_folder(variant, own))
            make = partial(program_plan, platform.machine, variant, inside, uid=uid, temporary=own)
            plan = await anyio.to_thread.run_sync(make)
            program = await start_program(platform.python, plan, self._isolation, platform.cgroups, request.limits)
            program.own(temporary)
            return program


def _folder(variant: ProgramVariant, temporary: Path) -> Path:
    return _TEMPORARY if variant.namespaces else temporary.resolve()


def _candidates(isolation: Isolation, *, as_root: bool) -> list[ProgramVariant]:
    """Return the variants of this tier, strongest first."""
    namespaces = isolation is Isolation.FULL
    if not as_root and namespaces:
        return [ProgramVariant(namespaces=True, user_namespace=True)]
    if as_root and namespaces:
        mapped = ProgramVariant(namespaces=True, own_user=True, maps_ids=True)
        without_user = evolve(mapped, own_user=False, maps_ids=False)
        return [mapped, without_user, evolve(without_user, user_namespace=True)]
    return [ProgramVariant(own_user=True), ProgramVariant()] if as_root else [ProgramVariant()]


def _fitting(proved: ProgramVariant, request: ProgramRequest) -> list[ProgramVariant]:
    """Return the verified variant, and a fallback for places that are inaccessible to another user."""
    if not proved.own_user:
        return [proved]
    as_host = evolve(proved, own_user=False, maps_ids=False)
    if proved.maps_ids:
        # Not every file system supports ID-mapped mounts.
        return [proved, as_host]
    return [as_host] if request.places else [proved]


def _message(request: ProgramRequest, failure: ProgramNotStarted) -> str:
    if failure.step == "folder":
        return f"cannot run the program in `{request.folder}`: {failure}"
    if failure.step == "run":
        return f"cannot run `{request.arguments[0]}`: {failure}"
    return f"cannot isolate the program: {failure}"


def _hint(failure: ProgramNotStarted) -> str:
    if failure.step == "run":
        return "check that the file is executable, and that the files it needs are in the program's places"
    if failure.step == "folder":
        return "check that the folder exists and is in one of the program's places"
    if failure.step == "execution":
        return "another filter of the host's container may have a listener; let the program run other programs"
    return "check that the program's places exist, and that their paths contain no symbolic links"
