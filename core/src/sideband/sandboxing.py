"""The interface of sandbox plugins: a probe that proves the isolation tier, and launchers of workers and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cached_property
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

# Address space that programs reserve but do not use: code, thread stacks, allocator arenas.
_RESERVED = 1 << 30


class Isolation(IntEnum):
    """The isolation tiers, weakest first. A host reports a tier only after a throw-away worker has proved it."""

    NONE = 0
    SEATBELT_UNTESTED = 1
    NO_NAMESPACES = 2
    FULL = 3

    @cached_property
    def label(self) -> str:
        """The name in configuration, ledger and results, such as ``no-namespaces``."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def parse(cls, label: str) -> Isolation:
        """Return the tier with that label.

        Raises:
            ValueError: if the label is unknown. The message lists the known labels.
        """
        for tier in cls:
            if tier.label == label:
                return tier
        raise ValueError(f"unknown isolation tier `{label}`, expected one of {', '.join(tier.label for tier in cls)}")


@frozen
class Probe:
    """The result of probing a sandbox on this machine.

    Args:
        isolation: the tier that was proved.
        proofs: the operations that a throw-away worker tried and that were blocked, one sentence each.
        gaps: the operations that this tier does not block, one sentence each.
        hints: the changes to the system that would enable a higher tier.
    """

    isolation: Isolation
    proofs: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


@frozen
class WorkerLimits:
    """The limits of one worker process. The kernel enforces some of them, the host's watchdog all of them.

    Args:
        memory: the maximum resident memory in bytes.
        threads: the maximum number of threads, including the main thread.
        files: the maximum number of open descriptors.
        output: the maximum number of bytes that the worker writes to its standard output and error directly, bypassing
            the runtime.
    """

    memory: int = 1 << 30
    threads: int = 64
    files: int = 64
    output: int = 64 << 20

    @property
    def address_space(self) -> int:
        """The address space in bytes. It exceeds ``memory`` to leave room for memory that is only reserved."""
        return self.memory + _RESERVED


@frozen
class LaunchRequest:
    """A request to start a worker.

    Args:
        snapshot: a copy of the skill's folder made when the skill was loaded. The worker can read this copy, but not
            the skill's own folder.
        sdk: the first folder on the worker's import path. It holds the runtime and the generated SDK.
        packages: the folder with the dependencies of the skill, or ``None`` if it has no dependencies.
        environment: all environment variables of the worker. The host's variables are not inherited.
        limits: the limits of the process.
    """

    snapshot: Path
    sdk: Path
    packages: Path | None = None
    environment: Mapping[str, str] = Factory(dict)
    limits: WorkerLimits = field(factory=WorkerLimits)


@frozen
class WorkerUsage:
    """The current resource usage of a process.

    Args:
        memory: the resident memory in bytes, including shared pages.
        threads: the number of threads.
        files: the number of open descriptors, or ``None`` if it is unknown.
        processor: the processor time since the start of the process, in seconds.
    """

    memory: int
    threads: int
    files: int | None
    processor: float


class _StartedProcess(Protocol):
    """The host's interface to a process that a sandbox has started. The caller of the launch method owns it."""

    pid: int
    stdout: int
    stderr: int
    isolation: Isolation

    def kill(self) -> None:
        """Kill the process and all its descendants. Do nothing if it has exited."""

    def usage(self) -> WorkerUsage | None:
        """Return the current usage as reported by the kernel, or ``None`` if unknown or if the process has exited."""

    async def wait(self) -> int:
        """Wait for the process and return its exit code, or the negative signal number if a signal killed it."""

    async def close(self) -> None:
        """Kill and reap the process and its descendants, and close the descriptors. Idempotent."""


class WorkerProcess(_StartedProcess, Protocol):
    """A started worker. The caller of ``launch`` owns it and must call ``close``.

    Attributes:
        pid: the process id in the host's namespace, or 0 if it is not visible to the host.
        channel: the host's end of the protocol's socket pair, non-blocking.
        stdout: the non-blocking descriptor from which to read its standard output.
        stderr: the non-blocking descriptor from which to read its standard error.
        isolation: the tier that it runs on.
    """

    channel: socket

    def was_out_of_memory(self) -> bool:
        """Return whether the kernel killed the worker for exceeding its memory limit. Call it after it exits."""

    def show_stack(self) -> None:
        """Send SIGURG to the process. The runtime then prints its stack to standard error, even if Python is blocked.

        Do nothing if the process has exited.
        """


class Sandbox(Protocol):
    """A sandbox, as ``sideband_sandboxes()`` of a plugin in the group ``sideband.v1.sandbox`` returns it in a list.

    A host calls ``probe`` before it launches workers, and ``close`` after they have ended.

    Attributes:
        name: the entry-point name.
    """

    name: str

    async def probe(self, folders: Sequence[Path] = ()) -> Probe:
        """Determine by experiment which tier is available. Report only a tier that a worker has just proved.

        Args:
            folders: the parent folders of all snapshots, SDKs and packages that later ``launch`` requests will name.
                They exist. A sandbox may make them readable for all workers at once, provided that each worker can read
                only the paths in its own request.
        """

    async def launch(self, request: LaunchRequest) -> WorkerProcess:
        """Start a worker. The worker applies its lockdown before it reads the first message, or exits.

        Raises:
            WorkerStartFailed: if the worker could not be started. The message states the reason that the system gave.
        """

    async def close(self) -> None:
        """Release all resources kept between launches. Idempotent. ``probe`` may be called again afterwards."""


@frozen
class Place:
    """A folder or file that a program may use.

    Args:
        path: the absolute path, without symbolic links.
        writable: whether the program may modify it.
        executable: whether it may execute files in a place that it may modify. Files in other places are executable.
    """

    path: Path
    writable: bool = False
    executable: bool = False


@frozen
class ProgramLimits:
    """The limits of one program and its descendants. The kernel enforces those that it supports.

    Args:
        memory: the maximum memory of each process, in bytes.
        processes: the maximum number of processes and threads at the same time.
        files: the maximum number of open descriptors of each process.
        file_size: the maximum size of each file that is written, in bytes.
        cpu_seconds: the maximum processor time of each process.
    """

    memory: int = 2 << 30
    processes: int = 256
    files: int = 256
    file_size: int = 1 << 30
    cpu_seconds: int = 3_600


@frozen
class ProgramRequest:
    """A request to start a program, without a shell.

    Args:
        arguments: the argument vector. The first item is the absolute path of the program.
        folder: the absolute path of the working directory.
        environment: all environment variables. The host's variables are not inherited.
        places: the folders and files that the program may use, in addition to the system's programs and libraries.
        network: whether the program may use the network.
        sockets: whether the program may connect to unix sockets in its places, if the sandbox can hide all others.
        runs_others: whether the program may execute files other than its own.
        limits: the limits of the program and its descendants.
    """

    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = Factory(dict)
    places: tuple[Place, ...] = ()
    network: bool = False
    sockets: bool = False
    runs_others: bool = True
    limits: ProgramLimits = field(factory=ProgramLimits)


class ProgramProcess(_StartedProcess, Protocol):
    """A started program. The caller of ``launch_program`` owns it and must call ``close``.

    Attributes:
        pid: the process id in the host's namespace, or 0 if it is not visible to the host.
        stdin: the non-blocking descriptor to which to write its standard input, or -1 after ``end_input``.
        stdout: the non-blocking descriptor from which to read its standard output.
        stderr: the non-blocking descriptor from which to read its standard error.
        isolation: the tier that it runs on.
    """

    stdin: int

    def end_input(self) -> None:
        """Close its standard input, so that the program reads end-of-file. Idempotent."""

    def terminate(self) -> None:
        """Ask the program and its process group to exit, with SIGTERM. Do nothing if it has exited."""


@runtime_checkable
class ProgramSandbox(Sandbox, Protocol):
    """A sandbox that isolates programs as well as workers."""

    async def launch_program(self, request: ProgramRequest) -> ProgramProcess:
        """Start a program on the proved tier. Never fall back to a lower tier: a program's effects cannot be undone.

        Raises:
            WorkerStartFailed: if the program could not be started. The message states the reason that the system gave.
        """
