"""The sandbox: each worker is started by a program of the configuration, such as `nice` or `prlimit`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from sideband.workers import Isolation, LaunchRequest, Probe, Sandbox, WorkerProcess, WorkerStartFailed, launch

__all__ = ["Config", "sideband_sandboxes"]

NAME = "{{ cookiecutter.__entry }}"
# A sandbox reports a tier only if a worker has just proved it, and this one proves none: programs differ.
GAP = "a worker can do what the user of the host can do, except for what the program prevents"


class Config(BaseModel):
    """The table `[plugins.{{ cookiecutter.__entry }}]`."""

    model_config = ConfigDict(extra="forbid")

    program: tuple[str, ...] = Field(default=("nice", "-n", "10"), min_length=1)


class WrappedWorkers:
    """Starts workers with a program. It must run the command that follows, and keep its descriptors open."""

    name = NAME

    def __init__(self, program: Sequence[str]) -> None:
        self._program = tuple(program)

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:  # noqa: ARG002
        """Return the weakest tier: this sandbox proves no other."""
        if shutil.which(self._program[0]) is None:
            return Probe(Isolation.NONE, gaps=(GAP,), hints=(f"install {self._program[0]}",))
        return Probe(Isolation.NONE, gaps=(GAP,))

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker."""
        path = shutil.which(self._program[0])
        if path is None:
            raise WorkerStartFailed(f"the program {self._program[0]} was not found")
        return await launch(request, isolation=Isolation.NONE, wrapper=(path, *self._program[1:]))

    async def close(self) -> None:
        """Release nothing: each worker is closed by the host."""


def sideband_sandboxes(config: Config) -> list[Sandbox]:
    """Register the sandbox."""
    return [WrappedWorkers(config.program)]
