"""A running call of a skill's tool: its rights, effects and logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from ..broker import Broker, Call, EffectReport
from ..workers import CallHandler, Isolation, LogLine

_MAX_EFFECTS = 5_000
_MAX_LOGS = 10_000


@define(eq=False)
class RunningCall(CallHandler):
    """The handler of a worker's requests, which reach the broker with the rights of ``call`` only.

    Attributes:
        call: the call for the broker.
        effects: the effects that have ended, in that order.
        logs: the output of the skill, redacted.
    """

    call: Call
    _broker: Broker = field(repr=False)
    _on_effect: Callable[[EffectReport], None] | None = field(default=None, repr=False)
    _on_log: Callable[[LogLine], None] | None = field(default=None, repr=False)
    effects: list[EffectReport] = field(factory=list, init=False)
    logs: list[LogLine] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.call.on_effect = self._note_effect

    def assigned(self, isolation: Isolation) -> None:
        """See ``CallHandler.assigned``."""
        self.call.isolation = isolation.label

    async def dispatch(self, op: str, params: Mapping[str, Any]) -> Any:
        """See ``CallHandler.dispatch``."""
        return await self._broker.dispatch(self.call, op, params)

    def is_fire_and_forget(self, op: str) -> bool:
        """See ``CallHandler.is_fire_and_forget``."""
        return self._broker.ops.is_fire_and_forget(op, self.call.edition)

    @property
    def reported(self) -> int:
        """See ``CallHandler.reported``."""
        return self.call.reported

    def missed(self, reports: int) -> None:
        """See ``CallHandler.missed``."""
        if self.call.progress is not None:
            self.call.progress.lose(reports)

    def revoke(self) -> None:
        """See ``CallHandler.revoke``."""
        self.call.ended = True

    def log(self, line: LogLine) -> None:
        """See ``CallHandler.log``."""
        clean = LogLine(line.stream, self._broker.redactor.text(line.text))
        if len(self.logs) < _MAX_LOGS:
            self.logs.append(clean)
        if self._on_log is not None:
            self._on_log(clean)

    def _note_effect(self, effect: EffectReport) -> None:
        if len(self.effects) < _MAX_EFFECTS:
            self.effects.append(effect)
        if self._on_effect is not None:
            self._on_effect(effect)
