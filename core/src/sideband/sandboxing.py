"""What a sandbox plugin supplies: a probe that proves its tier, and launchers of workers and of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from socket import socket
from typing import Protocol, runtime_checkable

from attrs import Factory, field, frozen

__all__ = [
    "Isolation",
    "LaunchRequest",
    "Place",
    "Probe",
    "ProgramLimits",
    "ProgramProcess",
    "ProgramRequest",
    "ProgramSandbox",
    "Sandbox",
    "WorkerLimits",
    "WorkerProcess",
    "WorkerUsage",
]

# What programs reserve and never use: code, stacks of threads, arenas of allocators.
_RESERVED = 1 << 30


class Isolation(IntEnum):
    """The tiers, weakest first. A tier is claimed only where a throw-away worker has just proved it."""

    NONE = 0
    SEATBELT_UNTESTED = 1
    NO_NAMESPACES = 2
    FULL = 3

    @property
    def label(self) -> str:
        """As written in configuration, ledger and results: ``no-namespaces``."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def parse(cls, label: str) -> Isolation:
        """The tier of that label. Raises ``ValueError`` naming the known ones."""
        for tier in cls:
            if tier.label == label:
                return tier
        raise ValueError(f"`{label}` is no isolation tier; there are {', '.join(tier.label for tier in cls)}")


@frozen
class Probe:
    """What a sandbox can really do here.

    Args:
        isolation: the tier that was proved.
        proofs: what a throw-away worker tried and could not do, one sentence each.
        gaps: what stays possible on this tier, one sentence each.
        hints: what would have to change for a higher tier.
    """

    isolation: Isolation
    proofs: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


@frozen
class WorkerLimits:
    """Limits of one worker process. The kernel holds some of them, the host's watchdog all of them.

    Args:
        memory: resident bytes.
        threads: threads, the main one included.
        files: open descriptors.
        output: bytes written to its own standard output and error, past the runtime.
    """

    memory: int = 1 << 30
    threads: int = 64
    files: int = 64
    output: int = 64 << 20

    @property
    def address_space(self) -> int:
        """Bytes of address space: more than ``memory``, so that what is only reserved does not count."""
        return self.memory + _RESERVED


@frozen
class LaunchRequest:
    """One worker to start.

    Args:
        snapshot: the skill's folder as it was when loaded, the only one of the skill's that the worker may read.
        sdk: the folder that is first on the worker's path; it holds the runtime and the generated SDK.
        packages: the folder of the packages that the skill depends on, if it depends on any.
        environment: the worker's whole environment; nothing is inherited.
        limits: see there.
    """

    snapshot: Path
    sdk: Path
    packages: Path | None = None
    environment: Mapping[str, str] = Factory(dict)
    limits: WorkerLimits = field(factory=WorkerLimits)


@frozen
class WorkerUsage:
    """What a process uses at one moment.

    Args:
        memory: resident bytes, shared ones included.
        threads: how many it has.
        files: open descriptors; ``None`` if that can't be seen.
        processor: seconds of processor time since its start.
    """

    memory: int
    threads: int
    files: int | None
    processor: float


class _StartedProcess(Protocol):
    """What the host can do with a process that a sandbox has started. Whoever launched it owns it."""

    pid: int
    stdout: int
    stderr: int
    isolation: Isolation

    def kill(self) -> None:
        """End it at once, with all that it has started. Harmless if it has ended."""

    def usage(self) -> WorkerUsage | None:
        """What it uses now, as the kernel says; ``None`` if that can't be seen, or it has ended."""

    async def wait(self) -> int:
        """Its exit code; negative for the signal that ended it."""

    async def close(self) -> None:
        """Kill all that still runs of it, reap it, and close the descriptors. Can be called again."""


class WorkerProcess(_StartedProcess, Protocol):
    """A started worker. Whoever launched it owns it, and must ``close`` it.

    Attributes:
        pid: its process id, as the host sees it; 0 if the host can't see it.
        channel: the host's end of the protocol's socket pair, non-blocking.
        stdout: descriptor to read its standard output from, non-blocking.
        stderr: the same for its standard error.
        isolation: the tier that it runs on.
    """

    channel: socket

    def was_out_of_memory(self) -> bool:
        """Whether the kernel ended it because it wanted more memory than its limit. Ask once it has ended."""


class Sandbox(Protocol):
    """What ``sideband_sandboxes()`` of a plugin in the group ``sideband.v1.sandbox`` returns a list of.

    A host probes it before it launches workers, and closes it after they have ended.
    """

    name: str

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:
        """Find out, by trying, which tier can be had here. Never claims more than a worker just proved.

        Args:
            folders: those in which everything lies that workers will be launched with, now and later: the parents of
                snapshots, SDKs and packages. They exist. A sandbox may make them readable once, for all workers, as
                long as each worker reads no more in them than what its own request names.
        """

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker. It has run its lock-down, or ended itself, before it reads a first message.

        Raises:
            WorkerStartFailed: it could not be started; says what the system answered.
        """

    async def close(self) -> None:
        """End what it keeps between launches. Can be called again; a later ``probe`` starts anew."""


@frozen
class Place:
    """A folder or file that a command may use.

    Args:
        path: absolute, without symbolic links.
        writable: whether it may change what is there.
    """

    path: Path
    writable: bool = False


@frozen
class ProgramLimits:
    """Limits of one command with all that it starts. The kernel holds them as far as it can.

    Args:
        memory: bytes, of each process.
        processes: processes and threads at once.
        files: open descriptors of each process.
        file_size: bytes of one file that it writes.
        cpu_seconds: processor time of each process.
    """

    memory: int = 2 << 30
    processes: int = 256
    files: int = 256
    file_size: int = 1 << 30
    cpu_seconds: int = 3_600


@frozen
class ProgramRequest:
    """One command to start. There is no shell in between.

    Args:
        arguments: the vector; the first is the absolute path of the program.
        folder: the working directory, absolute.
        environment: the whole environment; nothing is inherited.
        places: what it may read and write besides the system's programs and libraries.
        network: whether it may use the network.
        limits: see there.
    """

    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = Factory(dict)
    places: tuple[Place, ...] = ()
    network: bool = False
    limits: ProgramLimits = field(factory=ProgramLimits)


class ProgramProcess(_StartedProcess, Protocol):
    """A started command. Whoever launched it owns it, and must ``close`` it.

    Attributes:
        pid: its process id, as the host sees it; 0 if the host can't see it.
        stdin: descriptor to write its standard input to, non-blocking; -1 once it was closed with ``end_input``.
        stdout: descriptor to read its standard output from, non-blocking.
        stderr: the same for its standard error.
        isolation: the tier that it runs on.
    """

    stdin: int

    def end_input(self) -> None:
        """Close its standard input: it reads the end. Can be called again."""


@runtime_checkable
class ProgramSandbox(Sandbox, Protocol):
    """A sandbox that isolates commands too, not only workers."""

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a command on the tier that was proved, or not at all: what has run can't be taken back.

        Raises:
            WorkerStartFailed: it could not be started; says what the system answered.
        """
