"""Chooses what isolates the workers: the strongest tier that an installed sandbox proves, if that is enough."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import anyio
from attrs import evolve

from ..plugins import PluginError, PluginHost
from ..workers import (
    Isolation,
    IsolationUnavailable,
    LaunchRequest,
    PlainSandbox,
    Probe,
    ProgramProcess,
    ProgramRequest,
    ProgramSandbox,
    Sandbox,
    WorkerProcess,
)

_Process = TypeVar("_Process", WorkerProcess, ProgramProcess)


class ChosenSandbox:
    """A sandbox that finds out what it is when it is first needed.

    Args:
        plugins: where the sandbox plugins are.
        required: the weakest tier that a worker may run on.
        folders: where everything lies that workers are launched with.
        alone: whether each call gets a worker of its own; only for what is said when a tier can't be had.
    """

    name = "chosen"

    def __init__(
        self, plugins: PluginHost, required: Isolation, folders: Sequence[Path] = (), *, alone: bool = False
    ) -> None:
        self._plugins = plugins
        self._required = required
        self._alone = alone
        self._folders = tuple(folders)
        self._choosing = anyio.Lock()
        self._sandboxes: list[Sandbox] = []
        self._chosen: tuple[Sandbox, Probe] | None = None

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002  it has been told its folders
        """What the best installed sandbox proves here."""
        return (await self._choose())[1]

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker.

        Raises:
            IsolationUnavailable: the required tier can't be had here, or a worker came without it, and was ended.
            WorkerStartFailed: the system refused.
        """
        sandbox, probe = await self._choose_required()
        return await self._checked(await sandbox.launch(request), probe)

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a command, isolated as workers are.

        Raises:
            IsolationUnavailable: the required tier can't be had here for commands.
            WorkerStartFailed: the system refused.
        """
        sandbox, probe = await self._choose_required()
        if not isinstance(sandbox, ProgramSandbox):
            hint = f"the sandbox `{sandbox.name}` isolates workers only"
            raise IsolationUnavailable(self._required.label, Isolation.NONE.label, (hint,))
        return await self._checked(await sandbox.launch_program(request), probe)

    async def _checked(self, process: _Process, probe: Probe) -> _Process:
        """What was started, unless its isolation is too weak: then it is ended."""
        if process.isolation < self._required:
            with anyio.CancelScope(shield=True):
                await process.close()
            raise self._unavailable(process.isolation, probe)
        return process

    async def require(self) -> Isolation:
        """The tier that workers get. Raises ``IsolationUnavailable`` if it is weaker than what is required."""
        return (await self._choose_required())[1].isolation

    async def _choose_required(self) -> tuple[Sandbox, Probe]:
        sandbox, probe = await self._choose()
        if probe.isolation < self._required:
            raise self._unavailable(probe.isolation, probe)
        return sandbox, probe

    def _unavailable(self, available: Isolation, probe: Probe) -> IsolationUnavailable:
        # What a person is told to write instead must not take the worker of its own from each call.
        wanted, accept = (f"{tier.label},call" if self._alone else tier.label for tier in (self._required, available))
        return IsolationUnavailable(wanted, accept, probe.hints)

    async def close(self) -> None:
        """End what the sandboxes keep. The workers have ended before."""
        async with self._choosing:
            self._chosen = None
            while self._sandboxes:
                await self._sandboxes.pop().close()

    async def _choose(self) -> tuple[Sandbox, Probe]:
        if self._chosen is not None:
            return self._chosen
        async with self._choosing:
            if self._chosen is None:
                self._chosen = await self._strongest()
            return self._chosen

    async def _strongest(self) -> tuple[Sandbox, Probe]:
        hints: list[str] = []
        plain = PlainSandbox()
        best: tuple[Sandbox, Probe] = (plain, await plain.probe(self._folders))
        for name in self._plugins.names("sandbox"):
            try:
                plugin = await self._plugins.load("sandbox", name)
            except PluginError as error:
                hints.append(error.message)
                continue
            for sandbox in plugin.contribution:
                # Known before it is probed, so that it is closed even if that is cancelled.
                self._sandboxes.append(sandbox)
                probe = await sandbox.probe(self._folders)
                hints.extend(probe.hints)
                best = max(best, (sandbox, probe), key=lambda pair: pair[1].isolation)
        sandbox, probe = best
        return sandbox, evolve(probe, hints=tuple(hints) or probe.hints)
