"""Calls to workers, their answers, and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Factory, field, frozen

from ..ops import OpDenied
from ..sandboxing import Isolation, LaunchRequest

__all__ = ["CallAnswer", "CallHandler", "LogLine", "WorkerCall", "WorkerReport"]


@frozen
class LogLine:
    """One line that a skill printed, or a note about its output.

    Args:
        stream: ``stdout`` or ``stderr`` for output of the call; ``worker.stdout`` or ``worker.stderr`` for output
            written to the process's own descriptors, which cannot be attributed to a call; ``note`` for notes of the
            host.
        text: at most 65,536 characters. A longer line is omitted entirely and replaced with a note.
    """

    stream: str
    text: str


class CallHandler:
    """The host's interface for a call in a worker. This base class denies all ops and discards all output."""

    def assigned(self, isolation: Isolation) -> None:
        """Handle the assignment of the call to a worker of this tier, before the call runs. Must not block."""

    async def dispatch(self, op: str, params: Mapping[str, Any]) -> Any:  # noqa: ARG002  subclasses use it
        """Run an op for the call.

        Raises:
            OpError: if the op failed. It is sent to the skill. Any other exception becomes ``op.failed`` without
                details.
        """
        raise OpDenied(op, "this call has no ops")

    def is_fire_and_forget(self, op: str) -> bool:
        """Return whether the op has no answer that the skill waits for."""
        return op == "progress.report"

    @property
    def reported(self) -> int:
        """The number of progress reports that were taken."""
        return 0

    def missed(self, reports: int) -> None:
        """Handle progress reports that were refused or cancelled, in order with the others. Must not block."""

    def revoke(self) -> None:
        """Refuse what its ops request from now on, since it has ended or is cancelled. Must not block."""

    def log(self, line: LogLine) -> None:
        """Handle a line that the skill printed. Must not block."""


_NO_HANDLER = CallHandler()


@frozen
class WorkerCall:
    """One call of a function in a worker.

    Args:
        id: an unguessable id, which is never reused.
        tool: ``skill.tool``, for messages.
        domain: the trust domain. Calls of one domain share a worker, so they must have equal rights.
        launch: the request to start the domain's worker, if it is not running.
        alone: whether the call gets its own worker, which is started for it and ends with it.
        module: the path of the module, inside the snapshot.
        function: the name of the function.
        arguments: the arguments, as plain JSON data and ``bytes``.
        handler: the host's interface for the call.
        timeout: the timeout in seconds. It includes the time that the call waits for a worker.
        capabilities: the capabilities of the call as strings, to inform the skill.
        environment: ``timezone`` and ``locale``.
    """

    id: str
    tool: str
    domain: str
    launch: LaunchRequest = field(repr=False)
    module: str
    function: str
    arguments: Mapping[str, Any] = field(repr=False)
    handler: CallHandler = field(default=_NO_HANDLER, repr=False)
    timeout: float = 60.0
    alone: bool = False
    capabilities: tuple[str, ...] = ()
    environment: Mapping[str, Any] = Factory(dict)


class NotBegun(Exception):
    """The worker did not begin the call and never will, so another worker may run it."""


@frozen
class CallAnswer:
    """The result of a call.

    Args:
        value: the return value, as plain JSON data and ``bytes``.
        isolation: the tier that its worker ran on.
        size: the size of the result message in bytes, or 0 if unknown.
    """

    value: Any = field(repr=False)
    isolation: Isolation
    size: int = field(default=0, eq=False)


@frozen
class WorkerReport:
    """An event in a worker that is not part of the result of a call, for the ledger.

    Args:
        code: ``call.finished`` (a dispatch of a finished call was refused), ``limit.in_flight`` and
            ``limit.dispatches`` (a dispatch was refused), ``op.failed`` (the host raised an exception other than
            ``OpError``), ``worker.protocol``, ``worker.exited``, ``worker.stuck`` (the worker ignored a cancellation
            and gets no new calls), ``worker.failed`` (the host failed while it served the worker), and the codes of
            ``WorkerOverLimit``. Each worker produces at most a hundred reports per code, and one with the number of
            further ones when it ends.
        message: one sentence.
        domain: the worker's trust domain.
        pid: the process id of the worker.
        call: the id of the call, if the report is about one.
        op: the op that the worker requested, if the report is about one.
    """

    code: str
    message: str
    domain: str
    pid: int
    call: str | None = None
    op: str | None = None
