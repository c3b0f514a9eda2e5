"""The context of tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ._agent import AgentContext


class ToolContext(AgentContext, Protocol):
    """The context of a tool call. Ops that it dispatches are recorded as effects of the call.

    Attributes:
        call: the id of the call.
        key: the idempotency key of the call, ``session:run:step``.
    """

    @property
    def call(self) -> str:
        """The id of the call."""

    @property
    def key(self) -> str:
        """The idempotency key of the call."""

    async def progress(
        self,
        *,
        current: float | None = None,
        total: float | None = None,
        message: str | None = None,
        unit: str | None = None,
    ) -> None:
        """Report progress to observers of the call. It is not sent to the model.

        For output that arrives bit by bit, use ``emit_tool_progress`` of ``sideband.tools``.

        Args:
            current, total: the current and the final value.
            message: one line for display.
            unit: the unit of the values, such as ``bytes``.
        """

    async def output(self, handle: str) -> str:
        """Return the complete text of a result that was truncated for the model.

        Raises:
            LookupError: if this session has no result with this handle.
        """

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """Return the skills that the agent may use: each with ``name``, ``description``, ``location`` and ``tools``."""
