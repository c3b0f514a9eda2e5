"""A call as the host asks for it, and what comes back."""

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
        stream: ``stdout`` or ``stderr`` as printed by the call; ``worker.stdout`` or ``worker.stderr`` for what
            reached the process's own descriptors, which belongs to no call in particular; ``note`` from the host.
        text: at most 65,536 characters. A longer line is left out, whole, with a note in its place.
    """

    stream: str
    text: str


class CallHandler:
    """What a call in a worker reaches in the host. This one refuses every op, and drops what is printed."""

    def assigned(self, isolation: Isolation) -> None:
        """Take note of the tier of the worker that is about to run the call. Must not block."""

    async def dispatch(self, op: str, params: Mapping[str, Any]) -> Any:  # noqa: ARG002  the signature is for others
        """Run an op for the call.

        Raises:
            OpError: reaches the skill as it is; anything else becomes ``op.failed`` without details.
        """
        raise OpDenied(op, "this call has no ops")

    def is_fire_and_forget(self, op: str) -> bool:
        """Whether the skill waits for no answer of this op."""
        return op == "progress.report"

    def log(self, line: LogLine) -> None:
        """Take a line that the skill printed, at once. Must not block."""


_NO_HANDLER = CallHandler()


@frozen
class WorkerCall:
    """One call of one function.

    Args:
        id: unguessable, and never used again.
        tool: ``skill.tool``, for messages.
        domain: names the trust domain. Calls of one domain share a worker; they must have equal rights.
        launch: how to start the domain's worker if there is none.
        alone: whether it gets a worker of its own, started for it and ended with it.
        module: the file of the function, inside the snapshot.
        function: its name.
        arguments: plain JSON data and ``bytes``.
        handler: what it reaches in the host.
        timeout: seconds from when the pool gets it; what it waits for a worker counts.
        capabilities: the rights of the call as text, to inform the skill.
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


@frozen
class CallAnswer:
    """What a call returned, and what isolated it.

    Args:
        value: plain JSON data and ``bytes``.
        isolation: the tier that its worker ran on.
        size: bytes of the line that it came in; 0 if that is not known.
    """

    value: Any = field(repr=False)
    isolation: Isolation
    size: int = field(default=0, eq=False)


@frozen
class WorkerReport:
    """Something that happened in a worker and that nobody was waiting for, so that it can be recorded.

    Args:
        code: ``call.finished`` (a dispatch for a call that has ended was refused), ``limit.in_flight`` and
            ``limit.dispatches`` (a dispatch was refused), ``op.failed`` (the host raised something that is no
            ``OpError``), ``worker.protocol``, ``worker.exited``, ``worker.stuck`` (it did not obey a cancel and takes
            no new calls), ``worker.failed`` (the host itself failed with it), and the codes of ``WorkerOverLimit``. A
            worker gives a hundred reports of one code; how many more there were is said when it ends.
        message: one sentence.
        domain: the worker's trust domain.
        pid: its process id.
        call: the call that it is about, if it is about one.
        op: the op that was asked for, as the worker said.
    """

    code: str
    message: str
    domain: str
    pid: int
    call: str | None = None
    op: str | None = None
