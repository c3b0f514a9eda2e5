"""Events of approvals. They belong to the host: its plugins observe them, but ``on_event`` of an agent does not."""

from __future__ import annotations

from attrs import frozen

from ...ops import Level, Origin
from .._event import ObserveEvent

__all__ = [
    "ApprovalEnd",
    "ApprovalStart",
]


@frozen
class ApprovalStart(ObserveEvent):
    """A person is asked for approval, or the request is stored because there is no approver.

    Attributes:
        request: the id of the request. Equal requests have the same id.
        about: ``grant``, ``tool``, ``effect`` or ``replay``.
        subject: the op, the tool, or the holder of the grant.
        origin: who requests it.
        level: the level of the effect or tool, if it has one.
        waits: whether an approver answers it now; else it is answered later, maybe by another host.

    Example:
        >>> from sideband.hooks import ApprovalStart, hookimpl
        >>> from sideband.ops import Origin
        >>> @hookimpl
        ... def approval_start(event: ApprovalStart) -> None:
        ...     print(f"`{event.subject}` needs an approval")
        >>> approval_start(ApprovalStart("4f1d", "effect", "mail.send", Origin()))
        `mail.send` needs an approval
    """

    request: str
    about: str
    subject: str
    origin: Origin
    level: Level | None = None
    waits: bool = False


@frozen
class ApprovalEnd(ObserveEvent):
    """A request for approval was answered, or is no longer asked.

    Attributes:
        request: the id of the request.
        about: ``grant``, ``tool``, ``effect`` or ``replay``.
        subject: the op, the tool, or the holder of the grant.
        origin: who requested it.
        level: the level of the effect or tool, if it has one.
        verdict: ``allow``, ``deny``, or ``unanswered`` if the approver failed, or the question was cancelled.
        scope: what an ``allow`` admits: ``once``, ``session`` or ``always``.
        ms: the time since it was asked, in milliseconds.

    Example:
        >>> from sideband.hooks import ApprovalEnd, hookimpl
        >>> denied: list[str] = []
        >>> @hookimpl
        ... def approval_end(event: ApprovalEnd) -> None:
        ...     if event.verdict == "deny":
        ...         denied.append(event.subject)
    """

    request: str
    about: str
    subject: str
    origin: Origin
    level: Level | None = None
    verdict: str = "unanswered"
    scope: str = "once"
    ms: float = 0.0
