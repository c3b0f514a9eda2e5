"""Runs commands on the tier that was proved for workers, once a throw-away command has proved it for commands too."""

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
from ._probe import ProgramGround, prove_programs
from ._process import PREFIX, IsolatedProgram, start_program, temporary_folder

_TEMPORARY = Path("/tmp")  # noqa: S108 - the command's own, wherever that is


class ProgramLauncher:
    """Commands of one host, all on one tier.

    Args:
        ground: what there is.
        isolation: the tier; commands run on it or not at all.
    """

    def __init__(self, ground: ProgramGround, isolation: Isolation) -> None:
        self._ground = ground
        self._isolation = isolation
        self._proving = anyio.Lock()
        self._variant: ProgramVariant | None = None
        self._proofs: tuple[str, ...] = ()
        self._problems: list[str] = []

    async def proofs(self) -> tuple[str, ...]:
        """What a throw-away command tried in vain.

        Raises:
            IsolationUnavailable: the tier can't be had for commands.
        """
        await self._proved()
        return self._proofs

    async def launch(self, request: ProgramRequest) -> IsolatedProgram:
        """Start a command.

        Raises:
            IsolationUnavailable: the tier can't be had for commands.
            WorkerStartFailed: this one can't be started.
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
                self._proofs = await prove_programs(self._ground, self._isolation, variant)
            except (ProgramNotStarted, WorkerStartFailed) as error:
                self._problems.append(f"commands can't be isolated: {error}")
            else:
                self._variant = variant
                return

    async def _start(self, variant: ProgramVariant, request: ProgramRequest) -> IsolatedProgram:
        uid = fresh_uid()
        counted = not (variant.own_user or variant.user_namespace)
        processes = await anyio.to_thread.run_sync(_own_processes) if counted else 0
        ground = self._ground
        async with temporary_folder(uid if variant.own_user and not variant.namespaces else None) as temporary:
            inside = request if request.folder != _TEMPORARY else evolve(request, folder=_folder(variant, temporary))
            make = partial(program_plan, ground.machine, variant, inside, uid=uid, temporary=temporary)
            plan = await anyio.to_thread.run_sync(partial(make, processes=processes))
            command = await start_program(ground.python, plan, self._isolation, ground.cgroups, request.limits)
            command.own(temporary)
            return command


def _folder(variant: ProgramVariant, temporary: Path) -> Path:
    return _TEMPORARY if variant.namespaces else temporary.resolve()


def _candidates(isolation: Isolation, *, as_root: bool) -> list[ProgramVariant]:
    """The ways to have this tier, strongest first."""
    namespaces = isolation is Isolation.FULL
    if not as_root and namespaces:
        return [ProgramVariant(namespaces=True, user_namespace=True)]
    if as_root and namespaces:
        mapped = ProgramVariant(namespaces=True, own_user=True, maps_ids=True)
        return [mapped, evolve(mapped, own_user=False, maps_ids=False)]
    return [ProgramVariant(own_user=True), ProgramVariant()] if as_root else [ProgramVariant()]


def _fitting(proved: ProgramVariant, request: ProgramRequest) -> list[ProgramVariant]:
    """The proved variant, and what is left where a place can't be had as another user."""
    if not proved.own_user:
        return [proved]
    as_host = evolve(proved, own_user=False, maps_ids=False)
    if proved.maps_ids:
        # Not every file system can show its files as somebody else's.
        return [proved, as_host]
    return [as_host] if request.places else [proved]


def _own_processes() -> int:
    """How many threads the host's user has now: where nothing else tells a command's from his."""
    uid, count = os.geteuid(), 0
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                count += len(os.listdir(f"{entry.path}/task")) if entry.stat().st_uid == uid else 0  # noqa: PTH208
            except OSError:
                continue
    return count


def _message(request: ProgramRequest, failure: ProgramNotStarted) -> str:
    if failure.step == "folder":
        return f"the command can't be run in `{request.folder}`: {failure}"
    if failure.step == "run":
        return f"`{request.arguments[0]}` can't be run: {failure}"
    return f"the command could not be isolated: {failure}"


def _hint(failure: ProgramNotStarted) -> str:
    if failure.step == "run":
        return "check that it is a program, and that what it needs lies in its places"
    if failure.step == "folder":
        return "check that it exists, and lies in a place of the command"
    return "check that its places exist, and are named without symbolic links"
