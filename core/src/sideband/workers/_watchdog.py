"""Compares what a worker uses with what it may use, several times a second."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..sandboxing import WorkerLimits, WorkerProcess
from ._errors import WorkerError, WorkerOverLimit

_IDLE_SECONDS = 1.0
_MORE_MEMORY = "give it more with `sideband.memory` in its SKILL.md, as far as the policy allows"


class Watchdog:
    """Watches one worker. What the kernel's own limit has stopped never gets here: it is the skill's to handle.

    Args:
        process: as launched.
        limits: what it may use.
    """

    def __init__(self, process: WorkerProcess, limits: WorkerLimits) -> None:
        self._process = process
        self._limits = limits
        self._idle_since: float | None = None

    def look(self, *, is_idle: bool) -> Callable[[], WorkerError] | None:
        """Look once.

        Args:
            is_idle: whether no call is in the worker. What it computes then, nobody has asked for.

        Returns:
            What makes the error of a worker that has to be ended; ``None`` if all is well, or nothing can be seen.
        """
        usage = self._process.usage()
        if usage is None:
            return None
        limits = self._limits
        if usage.memory > limits.memory:
            used, limit = mebibytes(usage.memory), mebibytes(limits.memory)
            return partial(WorkerOverLimit, "memory", used, limit, hint=_MORE_MEMORY)
        if usage.threads > limits.threads:
            return partial(WorkerOverLimit, "threads", f"{usage.threads}", f"{limits.threads}")
        if usage.files is not None and usage.files > limits.files:
            return partial(WorkerOverLimit, "files", f"{usage.files} descriptors", f"{limits.files}")
        return self._look_at_idleness(usage.processor, is_idle=is_idle)

    def look_back(self) -> Callable[[], WorkerError] | None:
        """What the kernel ended it for, if it has ended and it was the limit of memory."""
        if not self._process.was_out_of_memory():
            return None
        limit = mebibytes(self._limits.memory)
        return partial(WorkerOverLimit, "memory", f"more than {limit}", limit, hint=_MORE_MEMORY)

    def _look_at_idleness(self, processor: float, *, is_idle: bool) -> Callable[[], WorkerError] | None:
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
                hint="a thread of the skill went on when its call had ended; let the call wait for its threads",
            )
        return None


def mebibytes(count: int) -> str:
    """As people read it: ``1,024 MiB``."""
    return f"{count / (1 << 20):,.0f} MiB"
