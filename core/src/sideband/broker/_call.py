"""The host's state of a call: its origin, grant, deadline and cleanup functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio
from attrs import Factory, define, field, frozen

from ..contexts import Lease
from ..contexts._editions import Edition
from ..hooks import HookRegistry
from ..ops import Grant, Origin
from ._attempt import Attempt
from ._progress import CallProgress


@frozen
class EffectReport:
    """A report of a finished dispatch, with the same data as its ledger entry.

    Args:
        id: the effect's id in the ledger.
        op: the name of the op.
        status: ``done``, ``failed``, ``denied``, ``cancelled`` or ``unknown``.
        decision: the capabilities that allowed the dispatch, or the reason for a denial.
        ms: the duration of the dispatch in milliseconds.
        params: the recordable parameters.
        error: the error as data, or ``None``.
    """

    id: str
    op: str
    status: str
    decision: str
    ms: float
    params: Mapping[str, Any]
    error: Mapping[str, Any] | None = None


@define(eq=False)
class Call:
    """The broker's state of one call. The host creates it; messages of a worker cannot change it.

    Args:
        id: an unguessable id.
        grant: the grant. The broker consults no other source of rights.
        granted_by: the source of each capability in ``grant``, for the ledger: ``call``, ``policy``, ``remembered`` or
            ``person``. Empty for a call without a skill.
        domain: the skill snapshot, grant and principal. Calls of the same domain may share resources.
        origin: the origin, which is part of each record.
        deadline: the deadline on the clock of ``anyio.current_time()``.
        isolation: the label of the tier that the worker runs on.
        code: a digest of the code that causes the effects; empty if it is not a skill's. A stored result is returned
            only to the same code.
        attempt: the attempt to run a call with an idempotency key, from which each effect gets its own key.
        progress: takes the progress of its ops, if something observes it.
        on_effect: called with each effect that has ended. Must not block.
        on_answer: called before each answer, also one from the record, with the id of the effect, the op, and the
            result or the error.
        on_part: called with the parts of incomplete results, redacted.
        hooks: the hooks that decide about and observe the effects of the call, or ``None`` for those of the host.
        note: data that is added to the record of an op of the host itself.
        decided: whether guards have decided about that op before, in an attempt that was interrupted.
        most_values: the maximum number of values in the parameters of one effect, at any depth. Each value costs
            microseconds to validate and record, which delays other calls.
        ends_dispatches: whether the creator of the call cancels its dispatches at its deadline, so that an op needs no
            deadline of its own for that.
        outer: the lease of the context or run that made the call.
        depth: the number of calls of tools within which an op made the call.
        holder: the id of the call whose rights it has, if an op made it with rights of its caller; else its own.
        within: the effect of an op that made the call; empty for a call that no op made.
        edition: the edition of plugins that all its ops are of, if its creator entered one; else each op is current.
        scope: what a cassette knows about the call of a tool that this is.
        reported: the number of its progress reports that were taken.
        ended: whether it has ended or was cancelled.
    """

    id: str
    grant: Grant
    domain: str
    origin: Origin
    deadline: float
    isolation: str = "none"
    code: str = ""
    attempt: Attempt | None = None
    granted_by: Mapping[str, str] = field(factory=dict)
    progress: CallProgress | None = None
    on_effect: Callable[[EffectReport], None] | None = None
    on_answer: Callable[[str, str, Any], Awaitable[None]] | None = None
    on_part: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None
    hooks: HookRegistry | None = None
    note: Mapping[str, Any] = field(factory=dict)
    decided: bool = False
    most_values: int = 100_000
    ends_dispatches: bool = False
    outer: Lease | None = None
    depth: int = 0
    holder: str = Factory(lambda self: self.id, takes_self=True)
    within: str = ""
    edition: Edition | None = None
    scope: Any = field(default=None, repr=False)
    reported: int = field(default=0, init=False)
    ended: bool = field(default=False, init=False)
    _closers: list[Callable[[], Awaitable[None]]] = field(factory=list, init=False)

    def givers(self, capabilities: Iterable[str]) -> tuple[str, ...]:
        """Return the source of each capability, or an empty string for a narrowed one. Empty if no source is known."""
        return tuple(self.granted_by.get(one, "") for one in capabilities) if self.granted_by else ()

    def is_over(self) -> bool:
        """See ``Lease``."""
        return self.ended or (self.outer is not None and self.outer.is_over())

    def on_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Run ``close`` when the call has ended."""
        self._closers.append(close)

    async def end(self, report: Callable[[Exception], object]) -> None:
        """Run all registered functions in reverse order, even if some of them fail."""
        self.ended = True
        if not self._closers:
            return
        with anyio.CancelScope(shield=True):
            while self._closers:
                try:
                    await self._closers.pop()()
                except Exception as error:  # noqa: BLE001  a failure in one plugin must not prevent the others from closing
                    report(error)
