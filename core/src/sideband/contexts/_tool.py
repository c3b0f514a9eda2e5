"""The context that tools get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ._agent import AgentContext


class ToolContext(AgentContext, Protocol):
    """What a tool gets besides its arguments. ``dispatch`` makes effects of the call, recorded under it.

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
        self, *, current: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell whoever watches how far the call is. Never sent to the model."""

    async def output(self, handle: str) -> str:
        """The whole text of a result of which the model saw only a part.

        Raises:
            LookupError: this session has no such result.
        """

    async def skills(self) -> tuple[Mapping[str, Any], ...]:
        """The skills that the agent may use: each with ``name``, ``description``, ``location`` and ``tools``."""
