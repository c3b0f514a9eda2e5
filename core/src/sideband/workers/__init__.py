"""Worker processes: how they are started, spoken to and replaced, and what a sandbox plugin supplies.

Names are loaded when they are used: a worker of somebody else's host (``python -m sideband.worker``) passes through
here, and needs nothing of it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sandboxing import (
        Isolation,
        LaunchRequest,
        Place,
        Probe,
        ProgramLimits,
        ProgramProcess,
        ProgramRequest,
        ProgramSandbox,
        Sandbox,
        WorkerLimits,
        WorkerProcess,
        WorkerUsage,
    )
    from ._calls import CallAnswer, CallHandler, LogLine, WorkerCall, WorkerReport
    from ._errors import (
        AboveMaximum,
        ArgumentsInvalid,
        CallCancelled,
        CallError,
        CallTimeout,
        GrantRequired,
        IsolationUnavailable,
        ProtocolViolation,
        SkillFailed,
        SkillRefused,
        ToolNotFound,
        WorkerError,
        WorkerExited,
        WorkerOverLimit,
        WorkerStartFailed,
    )
    from ._launcher import PlainSandbox, launch, worker_command
    from ._pipes import WorkerPipes
    from ._pool import WorkerPool
    from ._programs import launch_plain
    from ._sdk_files import WORKER_FILE, runtime_files
    from ._snapshots import Snapshot, SnapshotFailed, snapshot
    from ._usage import read_usage

_MODULES = {
    "._calls": ("CallAnswer", "CallHandler", "LogLine", "WorkerCall", "WorkerReport"),
    "._programs": ("launch_plain",),
    "._errors": (
        "AboveMaximum",
        "ArgumentsInvalid",
        "CallCancelled",
        "CallError",
        "CallTimeout",
        "GrantRequired",
        "IsolationUnavailable",
        "ProtocolViolation",
        "SkillFailed",
        "SkillRefused",
        "ToolNotFound",
        "WorkerError",
        "WorkerExited",
        "WorkerOverLimit",
        "WorkerStartFailed",
    ),
    "._launcher": ("PlainSandbox", "launch", "worker_command"),
    "._pipes": ("WorkerPipes",),
    "._pool": ("WorkerPool",),
    "._sdk_files": ("WORKER_FILE", "runtime_files"),
    "._snapshots": ("Snapshot", "SnapshotFailed", "snapshot"),
    "._usage": ("read_usage",),
    "..sandboxing": (
        "ProgramLimits",
        "ProgramProcess",
        "ProgramRequest",
        "ProgramSandbox",
        "Isolation",
        "LaunchRequest",
        "Place",
        "Probe",
        "Sandbox",
        "WorkerLimits",
        "WorkerProcess",
        "WorkerUsage",
    ),
}
_ORIGIN = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "WORKER_FILE",
    "AboveMaximum",
    "ArgumentsInvalid",
    "CallAnswer",
    "CallCancelled",
    "CallError",
    "CallHandler",
    "CallTimeout",
    "GrantRequired",
    "Isolation",
    "IsolationUnavailable",
    "LaunchRequest",
    "LogLine",
    "Place",
    "PlainSandbox",
    "Probe",
    "ProgramLimits",
    "ProgramProcess",
    "ProgramRequest",
    "ProgramSandbox",
    "ProtocolViolation",
    "Sandbox",
    "SkillFailed",
    "SkillRefused",
    "Snapshot",
    "SnapshotFailed",
    "ToolNotFound",
    "WorkerCall",
    "WorkerError",
    "WorkerExited",
    "WorkerLimits",
    "WorkerOverLimit",
    "WorkerPipes",
    "WorkerPool",
    "WorkerProcess",
    "WorkerReport",
    "WorkerStartFailed",
    "WorkerUsage",
    "launch",
    "launch_plain",
    "read_usage",
    "runtime_files",
    "snapshot",
    "worker_command",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415  only when a name is asked for

    module = _ORIGIN.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module, __name__), name)
    globals()[name] = value
    return value
