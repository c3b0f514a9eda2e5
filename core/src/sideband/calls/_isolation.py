"""Choose the installed sandbox with the strongest isolation tier that passes its probe."""

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
    Probe,
    ProgramProcess,
    ProgramRequest,
    ProgramSandbox,
    Sandbox,
    WorkerProcess,
)

_Process = TypeVar("_Process", WorkerProcess, ProgramProcess)


class ChosenSandbox:
    """A sandbox that delegates to the strongest installed one, which is chosen on first use.

    Args:
        plugins: the plugin host with the sandbox plugins.
        required: the weakest tier that workers may use.
        folders: the folders with all files that workers need.
        alone: whether each call gets its own worker; used in the message if the tier is unavailable.
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

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002  uses the folders of the constructor
        """Return the probe of the strongest installed sandbox."""
        return (await self._choose())[1]

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker.

        Raises:
            IsolationUnavailable: if the required tier is unavailable, or a worker was started without it and killed.
            WorkerStartFailed: if the operating system refused to start it.
        """
        sandbox, probe = await self._choose_required()
        return await self._checked(await sandbox.launch(request), probe)

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a program in the isolation of workers.

        Raises:
            IsolationUnavailable: if the required tier is unavailable for programs.
            WorkerStartFailed: if the operating system refused to start it.
        """
        sandbox, probe = await self._choose_required()
        if not isinstance(sandbox, ProgramSandbox) and probe.isolation is Isolation.NONE:
            from ..workers import PlainSandbox  # noqa: PLC0415  as below

            sandbox = PlainSandbox()  # it isolates a program as little
        if not isinstance(sandbox, ProgramSandbox):
            hint = f"the sandbox `{sandbox.name}` supports workers only"
            raise IsolationUnavailable(self._required.label, Isolation.NONE.label, (hint,))
        return await self._checked(await sandbox.launch_program(request), probe)

    async def _checked(self, process: _Process, probe: Probe) -> _Process:
        """Return the process, or kill it and raise if its isolation is too weak."""
        if process.isolation < self._required:
            with anyio.CancelScope(shield=True):
                await process.close()
            raise self._unavailable(process.isolation, probe)
        return process

    async def require(self) -> Isolation:
        """Return the tier of workers. Raises ``IsolationUnavailable`` if it is weaker than the required tier."""
        if self._chosen is not None and self._chosen[1].isolation >= self._required:
            return self._chosen[1].isolation
        return (await self._choose_required())[1].isolation

    async def _choose_required(self) -> tuple[Sandbox, Probe]:
        sandbox, probe = await self._choose()
        if probe.isolation < self._required:
            raise self._unavailable(probe.isolation, probe)
        return sandbox, probe

    def _unavailable(self, available: Isolation, probe: Probe) -> IsolationUnavailable:
        # The suggested setting must keep `,call`.
        wanted, accept = (f"{tier.label},call" if self._alone else tier.label for tier in (self._required, available))
        return IsolationUnavailable(wanted, accept, probe.hints)

    async def close(self) -> None:
        """Close the sandboxes. All workers must have ended before."""
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
        from ..workers import PlainSandbox  # noqa: PLC0415  many programs start no worker

        hints: list[str] = []
        plain = PlainSandbox()
        without = await plain.probe(self._folders)
        best: tuple[Sandbox, Probe] = (plain, without)
        for name in self._plugins.names("sandbox", broken=True):
            try:
                plugin = await self._plugins.load("sandbox", name)
            except PluginError as error:
                hints.append(error.message)
                continue
            for sandbox in plugin.contribution:
                # Added before the probe, so that it is closed even if the probe is cancelled.
                self._sandboxes.append(sandbox)
                probe = await sandbox.probe(self._folders)
                hints.extend(probe.hints)
                # A plugin that proves no tier is used too: it may limit what workers do without isolating them.
                if best[0] is plain or probe.isolation > best[1].isolation:
                    best = (sandbox, probe)
        self._plugins.check_strict()
        sandbox, probe = best
        if not hints and probe.isolation is Isolation.NONE:
            hints.extend(without.hints)
        return sandbox, evolve(probe, hints=tuple(hints))
