"""Queue messages and inputs for an agent, at any time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sideband.messages import Attachment

from ._agent_state import AgentState
from ._attachments import checked_input
from ._queues import Queued

if TYPE_CHECKING:
    from sideband import Host


class AgentQueues(AgentState):
    """The queues of an agent. Each change is reported to the hook ``queue_update``."""

    host: Host

    def steer(self, text: str, *, attachments: Iterable[Attachment] = (), source: str = "user") -> None:
        """Queue a message that the model sees before its next step; between runs, it begins the next run."""
        self.queues.steer(checked_input(self.host.redactor, text, attachments, source))

    def follow_up(self, text: str, *, attachments: Iterable[Attachment] = (), source: str = "user") -> None:
        """Queue an input that begins its own run when the current one has ended."""
        self.queues.follow_up(checked_input(self.host.redactor, text, attachments, source))

    def clear_queues(self) -> tuple[Queued, ...]:
        """Remove and return all queued inputs and messages, which have ``text``, ``source`` and ``attachments``."""
        return self.queues.clear()
