"""Emit the progress of a tool call."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Self

from attrs import field, frozen
from sideband.broker import CallProgress, Redaction, delivered
from sideband.hooks import HookRegistry, ToolExecutionUpdate, ToolProgress
from sideband.settings import ToolSettings

from .._announcer import Announcer


def observes_progress(hooks: HookRegistry, settings: ToolSettings) -> bool:
    """Return whether a plugin observes the progress of tool calls, and the user wants it to be shown."""
    if not settings.progress:
        return False
    return hooks.has(ToolProgress.hook) or hooks.has(ToolExecutionUpdate.hook)


@frozen
class ToolProgressEvents:
    """The events of one call: all progress, and the newest report for simple displays.

    Args:
        announcer: emits the events.
        progress: the progress of the call.
    """

    announcer: Announcer = field(repr=False)
    progress: CallProgress = field(repr=False)

    @classmethod
    def of_call(cls, call: str, tool: str, announcer: Announcer, redactor: Redaction, settings: ToolSettings) -> Self:
        """Make the progress and the events of a call.

        Args:
            call: the id that the model gave the call.
            tool: the name of the tool.
            announcer: emits the events.
            redactor: the redaction of the host.
            settings: the table ``[tools]``.
        """
        if announcer.hooks.has(ToolProgress.hook):
            seconds, limit = settings.progress_seconds, settings.progress_bytes
            return cls(announcer, CallProgress(call, tool, redactor, seconds=seconds, limit=limit))
        return cls(announcer, CallProgress(call, tool, redactor, texts=False, reports=1))

    def emitted(self) -> AbstractAsyncContextManager[CallProgress]:
        """Emit the progress of the call, which runs within the block."""
        return delivered(self.progress, self._emit)

    async def _emit(self, event: ToolProgress) -> None:
        await self.announcer.emit_made(ToolProgress, lambda: event)
        is_report = event.current is not None or event.total is not None or event.message is not None
        if is_report and not self.progress.has_reports:
            await self.announcer.emit(
                ToolExecutionUpdate, event.call, event.tool, event.current, event.total, event.message, event.unit
            )
