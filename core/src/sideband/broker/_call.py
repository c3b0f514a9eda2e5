"""One call as the host knows it: who asks, with which rights, until when, and what must be closed when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import anyio
from attrs import define, field, frozen

from ..hooks import HookRegistry
from ..ops import Grant, Origin


@frozen
class Progress:
    """How far a call is, as told by one of its ops.

    Args:
        call: the call's id.
        source: the op that tells.
        current, total: in whatever unit the op counts.
        message: one line for people.
    """

    call: str
    source: str
    current: float | None = None
    total: float | None = None
    message: str | None = None


@frozen
class EffectReport:
    """One dispatch that has ended, as its ledger entry says it.

    Args:
        id: the effect's id in the ledger.
        status: ``done``, ``failed``, ``denied``, ``cancelled`` or ``unknown``.
        decision: why it was allowed or refused, in a few words.
        ms: from the request to its end, in milliseconds.
        params: the parameters that the ledger may hold.
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
    """Everything that the broker holds for one call. Made by the host; nothing a worker says changes it.

    Args:
        id: unguessable.
        grant: the rights; the only ones that the broker looks at.
        granted_by: who gave each capability of ``grant``, for the record: ``call``, ``policy``, ``remembered``,
            ``person``; of a call without a skill, nobody.
        domain: skill snapshot, grant and principal: who may share what the call leaves behind.
        origin: goes into each record.
        deadline: on ``anyio.current_time()``'s clock.
        isolation: the label of the tier that the worker runs on.
        key: makes each effect of the call idempotent, under ``key:op:digest:occurrence``.
        on_progress: gets progress, redacted; must not block.
        on_effect: gets each effect when it has ended; must not block.
        on_part: gets parts of results before these are complete, redacted.
        hooks: who decides about its effects and is told of them; ``None``: the host's.
        most_values: how many values the parameters of one of its effects may have, at any depth: validating and
            recording each costs the host microseconds, while other calls wait.
    """

    id: str
    grant: Grant
    domain: str
    origin: Origin
    deadline: float
    isolation: str = "none"
    key: str | None = None
    granted_by: Mapping[str, str] = field(factory=dict)
    on_progress: Callable[[Progress], None] | None = None
    on_effect: Callable[[EffectReport], None] | None = None
    on_part: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None
    hooks: HookRegistry | None = None
    most_values: int = 100_000
    _closers: list[Callable[[], Awaitable[None]]] = field(factory=list, init=False)
    _occurrences: Counter[str] = field(factory=Counter, init=False)

    def effect_key(self, op: str, params_digest: str) -> str | None:
        """The idempotency key of the next effect with these parameters, or ``None`` if the call has no key."""
        if self.key is None:
            return None
        name = f"{op}:{params_digest[:16]}"
        self._occurrences[name] += 1
        return f"{self.key}:{name}:{self._occurrences[name]}"

    def givers(self, capabilities: Iterable[str]) -> tuple[str, ...]:
        """Who gave each of these; empty where a capability is a narrower one, and none at all if nobody is known."""
        return tuple(self.granted_by.get(one, "") for one in capabilities) if self.granted_by else ()

    def on_end(self, close: Callable[[], Awaitable[None]]) -> None:
        """Run ``close`` when the call has ended."""
        self._closers.append(close)

    async def end(self, report: Callable[[Exception], object]) -> None:
        """Close what the call's ops left open, last first, each whether or not another one fails."""
        if not self._closers:
            return
        with anyio.CancelScope(shield=True):
            while self._closers:
                try:
                    await self._closers.pop()()
                except Exception as error:  # noqa: BLE001  one plugin's failure must not keep the others from closing
                    report(error)
