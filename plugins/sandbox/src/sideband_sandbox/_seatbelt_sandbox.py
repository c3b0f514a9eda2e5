"""The sandbox of macOS as a ``Sandbox``. UNTESTED there, as `_seatbelt.py` says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
from sideband.workers import Isolation, LaunchRequest, Probe, WorkerProcess, launch

from ._plan import own_folders
from ._seatbelt import SANDBOX_EXEC, SeatbeltInterpreter, prove_seatbelt, seatbelt_profile, seatbelt_wrapper

__all__ = ["SeatbeltSandbox"]


class SeatbeltSandbox:
    """Starts each worker under a profile of its own, if a throw-away worker has proved that profiles hold.

    Args:
        sandbox_exec: the program that applies a profile.
    """

    name = "sandbox"

    def __init__(self, sandbox_exec: Path = SANDBOX_EXEC) -> None:
        self._sandbox_exec = sandbox_exec
        self._found: tuple[Probe, SeatbeltInterpreter | None] | None = None
        self._proving = anyio.Lock()

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002 - each worker has its own profile
        """Which tier can be had here. Proved at the first call."""
        return (await self._find())[0]

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker on the tier that was proved."""
        probe, interpreter = await self._find()
        if interpreter is None:
            return await launch(request, isolation=Isolation.NONE)
        profile = await anyio.to_thread.run_sync(seatbelt_profile, interpreter, own_folders(request))
        wrapper = seatbelt_wrapper(profile, self._sandbox_exec)
        return await launch(request, isolation=probe.isolation, python=Path(interpreter.programs[0]), wrapper=wrapper)

    async def close(self) -> None:
        """Forget what was proved: nothing else is kept."""
        self._found = None

    async def _find(self) -> tuple[Probe, SeatbeltInterpreter | None]:
        async with self._proving:
            if self._found is None:
                self._found = await prove_seatbelt(Path(sys.executable), sandbox_exec=self._sandbox_exec)
            return self._found
