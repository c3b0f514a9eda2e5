"""Queues of an agent: messages for the current run, and inputs for later runs."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field, frozen
from sideband.messages import Attachment, TextPart, UserMessage


@frozen
class Queued:
    """A queued message.

    Attributes:
        text: the text of the message.
        source: who sent it.
        attachments: the images, files and recordings to send with it.
    """

    text: str
    source: str = "user"
    attachments: tuple[Attachment, ...] = ()


@define
class Queues:
    """First-in, first-out queues of messages and inputs.

    Attributes:
        steering: messages that the model sees before its next step.
        following: inputs; each begins its own run when the previous run has ended.
    """

    # Lists: each empty deque takes 760 bytes.
    steering: list[Queued] = field(factory=list)
    following: list[Queued] = field(factory=list)

    def __bool__(self) -> bool:
        return bool(self.steering or self.following)

    def next_input(self) -> Queued | None:
        """Remove and return the input of the next run. Messages too late for the last step begin a run too."""
        if self.following:
            return self.following.pop(0)
        return self.steering.pop(0) if self.steering else None


def user_message(text: str, attachments: Sequence[Attachment] = (), *, source: str = "user") -> UserMessage:
    """Build a user message from a text and attachments."""
    return UserMessage(content=(TextPart(text=text), *attachments), source=source)
