"""Events of workers. They belong to the host: its plugins observe them, but ``on_event`` of an agent does not."""

from __future__ import annotations

from attrs import frozen

from .._event import ObserveEvent

__all__ = [
    "WorkerEnd",
    "WorkerStart",
]


@frozen
class WorkerStart(ObserveEvent):
    """A worker has started and accepts calls. ``worker_end`` always follows.

    Attributes:
        worker: the number of the worker in its host, from 1.
        domain: the trust domain of its calls: the snapshot of the skill, the grant and the principal.
        isolation: the isolation tier that it runs on.
        ms: how long its start took, in milliseconds.

    Example:
        >>> from sideband.hooks import WorkerStart, hookimpl
        >>> slow: list[int] = []
        >>> @hookimpl
        ... def worker_start(event: WorkerStart) -> None:
        ...     if event.ms > 1000:
        ...         slow.append(event.worker)
    """

    worker: int
    domain: str
    isolation: str
    ms: float = 0.0


@frozen
class WorkerEnd(ObserveEvent):
    """A worker has ended.

    Attributes:
        worker: the number of the worker in its host.
        domain: the trust domain of its calls.
        isolation: the isolation tier that it ran on.
        status: ``retired`` if the host no longer needed it, or ``failed``.
        code: the code of the failure, such as ``worker.exited``; empty if it was retired.
        ms: how long it accepted calls, in milliseconds.

    Example:
        >>> from sideband.hooks import WorkerEnd, hookimpl
        >>> @hookimpl
        ... def worker_end(event: WorkerEnd) -> None:
        ...     if event.status == "failed":
        ...         print(f"worker {event.worker}: {event.code}")
        >>> worker_end(WorkerEnd(1, "d", "full", "failed", "worker.exited"))
        worker 1: worker.exited
    """

    worker: int
    domain: str
    isolation: str
    status: str = "retired"
    code: str = ""
    ms: float = 0.0
