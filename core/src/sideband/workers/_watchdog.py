"""Compare the resource usage of a worker with its limits, several times per second."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..sandboxing import WorkerLimits, WorkerProcess
from ._errors import WorkerError, WorkerOverLimit

_IDLE_SECONDS = 1.0
_MORE_MEMORY = "raise `sideband.memory` in its SKILL.md, within the limit of the policy"


class Watchdog:
    """The watchdog of one worker. It does not see limits that the kernel enforces: they cause errors in the skill.

    Args:
        process: the worker's process.
        limits: the limits of the worker.

    Attributes:
        processor: the processor time of the process at the last check, in seconds.
    """

    def __init__(self, process: WorkerProcess, limits: WorkerLimits) -> None:
        self._process = process
        self._limits = limits
        self._idle_since: float | None = None
        self.processor = 0.0

    def check(self, *, is_idle: bool) -> Callable[[], WorkerError] | None:
        """Check the usage once.

        Args:
            is_idle: whether the worker has no calls. It must not use processor time then.

        Returns:
            A factory for the error if the worker must be killed, or ``None`` if it is within its limits or its usage is
            unknown.
        """
        usage = self._process.usage()
        if usage is None:
            return None
        self.processor = usage.processor
        limits = self._limits
        if usage.memory > limits.memory:
            used, limit = mebibytes(usage.memory), mebibytes(limits.memory)
            return partial(WorkerOverLimit, "memory", used, limit, hint=_MORE_MEMORY)
        if usage.threads > limits.threads:
            return partial(WorkerOverLimit, "threads", f"{usage.threads}", f"{limits.threads}")
        if usage.files is not None and usage.files > limits.files:
            return partial(WorkerOverLimit, "files", f"{usage.files} descriptors", f"{limits.files}")
        return self._check_idle(usage.processor, is_idle=is_idle)

    def check_exit(self) -> Callable[[], WorkerError] | None:
        """Return a factory for the error if the kernel killed the worker for exceeding its memory limit."""
        if not self._process.was_out_of_memory():
            return None
        limit = mebibytes(self._limits.memory)
        return partial(WorkerOverLimit, "memory", f"more than {limit}", limit, hint=_MORE_MEMORY)

    def _check_idle(self, processor: float, *, is_idle: bool) -> Callable[[], WorkerError] | None:
        if not is_idle:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = processor
        elif (used := processor - self._idle_since) > _IDLE_SECONDS:
            return partial(
                WorkerOverLimit,
                "processor",
                f"{used:.1f} s after its calls had ended",
                f"{_IDLE_SECONDS:g} s",
                hint="make the call wait for its threads; a thread of the skill kept running after the call",
            )
        return None


def mebibytes(count: int) -> str:
    """Format a number of bytes for display: ``1,024 MiB``."""
    return f"{count / (1 << 20):,.0f} MiB"
