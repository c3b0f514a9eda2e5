"""Worker processes: how they are started, spoken to and replaced, and what a sandbox plugin supplies.

Names are loaded when they are used: a worker of somebody else's host (``python -m sideband.worker``) passes through
here, and needs nothing of it.
"""

# ruff: noqa: F403, F405  the modules below say what they offer, and `__all__` what of it is public

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from ..sandboxing import *
    from ._calls import *
    from ._errors import *
    from ._launcher import *
    from ._pipes import *
    from ._pool import *
    from ._programs import *
    from ._sdk_files import *
    from ._snapshots import *
    from ._usage import *

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

__getattr__, __dir__ = lazy(
    __name__,
    "..sandboxing",
    "._sdk_files",
    "._errors",
    "._calls",
    "._usage",
    "._pipes",
    "._snapshots",
    "._programs",
    "._launcher",
    "._pool",
)
