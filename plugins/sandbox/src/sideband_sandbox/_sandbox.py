"""The sandbox itself: proves once per host what can be had, and starts workers that way."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
from attrs import evolve
from sideband.workers import (
    Isolation,
    LaunchRequest,
    Probe,
    WorkerProcess,
    WorkerStartFailed,
    launch,
)

from ._paths import Interpreter, ReadablePath, inspect_interpreter, interpreter_paths
from ._plan import Machine, Plan, Variant, confined_plan, open_to_everyone, unconfined_plan
from ._probe import LOCKDOWN, Finding, fresh_uid, inspect_machine, prove, try_variant

__all__ = ["SystemSandbox"]

# Without it, threads of a C library that makes an arena for each would soon fill the address space.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


class SystemSandbox:
    """Isolates workers by the operating system's own means. A ``Sandbox``, as ``sideband.workers`` describes it.

    What it claims has been proved in this host process by a throw-away worker of the same interpreter.

    Args:
        machine: what to use instead of what is found here.
        python: the interpreter of the workers; the host's own if ``None``.

    Example:
        >>> probe = await SystemSandbox().probe()
        >>> probe.isolation.label
        'full'
    """

    name = "sandbox"

    def __init__(self, machine: Machine | None = None, python: Path | None = None) -> None:
        self._python = python or Path(sys.executable)
        self._machine = machine
        self._findings: dict[Path, Finding] = {}
        self._interpreters: dict[Path, Interpreter] = {}
        self._weaker: dict[tuple[Path, Variant], str] = {}
        self._proving = anyio.Lock()

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002  each worker has its own
        """Which tier the host's own interpreter can have here, proved at the first call."""
        return (await self._finding(self._python)).probe

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker on the tier that was proved for its interpreter.

        Raises:
            WorkerStartFailed: the system did not start it, or what was proved does not fit this skill's folders.
        """
        finding = await self._finding(self._python)
        request = evolve(request, environment={**_ENVIRONMENT, **request.environment})
        if finding.machine is None or finding.variant is None:
            return await _launch_unconfined(request)
        variant = await self._fitting_variant(finding.machine, finding.variant, request)
        interpreter = self._interpreters[self._python]
        plan = await anyio.to_thread.run_sync(_plan, finding.machine, variant, interpreter, request)
        return await launch(request, isolation=finding.probe.isolation, lockdown=LOCKDOWN, plan=plan)

    async def close(self) -> None:
        """Do nothing: nothing is kept."""

    async def _finding(self, python: Path) -> Finding:
        async with self._proving:
            if python not in self._findings:
                self._findings[python] = await self._prove(python)
            return self._findings[python]

    async def _prove(self, python: Path) -> Finding:
        machine, reason = (self._machine, "") if self._machine else inspect_machine()
        if machine is None:
            gaps = ("a worker can do all that the host's user can do",)
            return Finding(Probe(Isolation.NONE, gaps=gaps, hints=(reason,)))
        try:
            interpreter = await inspect_interpreter(python)
        except (OSError, ValueError) as error:
            raise WorkerStartFailed(f"the interpreter {python} can't be used: {error}") from error
        self._interpreters[python] = interpreter
        return await prove(machine, python, interpreter, as_root=os.geteuid() == 0)

    async def _fitting_variant(self, machine: Machine, variant: Variant, request: LaunchRequest) -> Variant:
        """The proved variant, or the same without an own user id if that user could not read the skill."""
        if not variant.own_user:
            return variant
        folders = _folders(request)
        readable = await anyio.to_thread.run_sync(
            lambda: open_to_everyone(folders, parents=not variant.namespaces),
        )
        if readable:
            return variant
        weaker = variant.without_own_user()
        async with self._proving:
            known = (self._python, weaker)
            if known not in self._weaker:
                interpreter = self._interpreters[self._python]
                self._weaker[known] = (await try_variant(machine, weaker, self._python, interpreter))[1]
        if self._weaker[known]:
            raise WorkerStartFailed(
                f"{request.snapshot} is not readable for a user id of the worker's own, "
                f"and with the host's own {self._weaker[known]}",
                hint="make the folder readable for every user",
            )
        return weaker


def _plan(machine: Machine, variant: Variant, interpreter: Interpreter, request: LaunchRequest) -> Plan:
    folders = _folders(request)
    own = [ReadablePath(str(path.resolve())) for path in folders]
    return confined_plan(
        machine,
        variant,
        [*interpreter_paths(interpreter), *own],
        limits=request.limits,
        links=[*folders, *(Path(way) for way in interpreter.ways)],
        staging=request.sdk,
        uid=fresh_uid(),
    )


def _folders(request: LaunchRequest) -> list[Path]:
    return [request.sdk, request.snapshot, *([request.packages] if request.packages else [])]


async def _launch_unconfined(request: LaunchRequest) -> WorkerProcess:
    if sys.platform != "linux":
        return await launch(request, isolation=Isolation.NONE)
    plan = unconfined_plan(request.limits)
    return await launch(request, isolation=Isolation.NONE, lockdown=LOCKDOWN, plan=plan)
