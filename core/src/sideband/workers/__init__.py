"""Worker processes: launching, the protocol, and replacement. Also the interface of sandbox plugins.

Names are imported on first use, because ``python -m sideband.worker`` imports this package and needs none of them.
"""

# ruff: noqa: F403, F405  each module below has an `__all__`; the one here lists the public names

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
    "CodeChanged",
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
    "WorkerBlocked",
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
    "._snapshots",
    "._pool",
    "._usage",
    "._pipes",
    "._programs",
    "._launcher",
)
