"""What waits for an agent: messages for the run that is under way, and inputs for runs after it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from attrs import define, field, frozen
from sideband.messages import ImagePart, TextPart, UserMessage


@frozen
class Queued:
    """One message that waits.

    Attributes:
        text: what is said.
        source: who says it.
        attachments: images that go with it.
    """

    text: str
    source: str = "user"
    attachments: tuple[ImagePart, ...] = ()


@define
class Queues:
    """First come, first served, each.

    Attributes:
        steering: seen by the model before its next step.
        following: each begins a run of its own, once the one before is done.
    """

    steering: deque[Queued] = field(factory=deque)
    following: deque[Queued] = field(factory=deque)

    def __bool__(self) -> bool:
        return bool(self.steering or self.following)

    def next_input(self) -> Queued | None:
        """What begins the next run. What came too late for the last step begins one too."""
        if self.following:
            return self.following.popleft()
        return self.steering.popleft() if self.steering else None


def user_message(text: str, attachments: Sequence[ImagePart] = (), *, source: str = "user") -> UserMessage:
    """A message of a text and images."""
    return UserMessage(content=(TextPart(text=text), *attachments), source=source)
