"""The macOS sandbox."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
from sideband.workers import Isolation, LaunchRequest, Probe, WorkerProcess, launch

from ._probe import no_isolation, prove_seatbelt
from ._profile import SANDBOX_EXEC, SeatbeltInterpreter, seatbelt_profile, seatbelt_wrapper


class SeatbeltSandbox:
    """Starts each worker under its own profile, once a probe worker has verified that profiles are enforced.

    UNTESTED: it has never run on macOS.

    Args:
        sandbox_exec: the program that applies a profile.

    Example:
        >>> sandbox = SeatbeltSandbox()
        >>> probe = await sandbox.probe()
        >>> probe.isolation.label
        'seatbelt-untested'
        >>> await sandbox.close()
    """

    name = "seatbelt"

    def __init__(self, sandbox_exec: Path = SANDBOX_EXEC) -> None:
        self._sandbox_exec = sandbox_exec
        self._found: tuple[Probe, SeatbeltInterpreter | None] | None = None
        self._proving = anyio.Lock()

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002 - each worker has its own profile
        """Return the tier available here. Verified at the first call, and again after ``close``."""
        return (await self._find())[0]

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker on the verified tier.

        Raises:
            WorkerStartFailed: if the system does not start it.
        """
        probe, interpreter = await self._find()
        if interpreter is None:
            return await launch(request, isolation=Isolation.NONE)
        own = [folder for folder in (request.sdk, request.snapshot, request.packages) if folder is not None]
        profile = await anyio.to_thread.run_sync(seatbelt_profile, interpreter, own)
        wrapper = seatbelt_wrapper(profile, self._sandbox_exec)
        return await launch(request, isolation=probe.isolation, python=Path(interpreter.programs[0]), wrapper=wrapper)

    async def close(self) -> None:
        """Discard the cached probe; there are no other resources."""
        self._found = None

    async def _find(self) -> tuple[Probe, SeatbeltInterpreter | None]:
        async with self._proving:
            if self._found is None:
                self._found = await self._prove()
            return self._found

    async def _prove(self) -> tuple[Probe, SeatbeltInterpreter | None]:
        if sys.platform != "darwin" and not await anyio.Path(self._sandbox_exec).exists():
            # On other systems a hint about macOS would not help.
            return no_isolation(), None
        return await prove_seatbelt(Path(sys.executable), sandbox_exec=self._sandbox_exec)
