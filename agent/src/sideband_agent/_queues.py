"""Queues of an agent: messages for the current run, and inputs for later runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from attrs import define, field, frozen
from sideband.messages import Attachment, TextPart, UserMessage
from sideband.rendering import whole_characters

QueueName = Literal["steering", "follow_up"]
QueueChange = Literal["added", "taken", "cleared"]
QueueMode = Literal["one", "all"]


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


OnChange = Callable[[QueueName, QueueChange, Sequence[Queued], Sequence[Queued]], None]
"""Called with the queue, the change, the messages that it is about, and those that wait after it."""


@define
class Queues:
    """First-in, first-out queues of messages and inputs. Change them with the methods only, which report each change.

    Args:
        steering_mode: whether the model sees ``all`` queued messages before its next step, or ``one``.
        follow_up_mode: whether each input begins a run of its own, ``one``, or ``all`` of one source begin one run.
        on_change: called after each change.

    Attributes:
        steering: messages that the model sees before its next step.
        following: inputs; each begins its own run when the previous run has ended.
    """

    steering_mode: QueueMode
    follow_up_mode: QueueMode
    on_change: OnChange = field(repr=False)
    # Lists: each empty deque takes 760 bytes.
    steering: list[Queued] = field(factory=list, init=False)
    following: list[Queued] = field(factory=list, init=False)

    def __bool__(self) -> bool:
        return bool(self.steering or self.following)

    def steer(self, queued: Queued) -> None:
        """Add a message for the next step."""
        self.steering.append(queued)
        self.on_change("steering", "added", (queued,), self.steering)

    def follow_up(self, queued: Queued) -> None:
        """Add an input."""
        self.following.append(queued)
        self.on_change("follow_up", "added", (queued,), self.following)

    def for_next_step(self) -> int:
        """Return how many messages the model sees before its next step."""
        return min(1, len(self.steering)) if self.steering_mode == "one" else len(self.steering)

    def remove_steering(self, queued: Queued) -> None:
        """Remove the first message, after it was stored, unless the queues were cleared meanwhile."""
        if self.steering and self.steering[0] is queued:
            del self.steering[0]
            self.on_change("steering", "taken", (queued,), self.steering)

    def next_input(self) -> Queued:
        """Remove and return the input of the next run. Messages too late for the last step begin a run too.

        Raises:
            IndexError: if both queues are empty.
        """
        if not self.following:
            first = self.steering[0]
            self.remove_steering(first)
            return first
        taken = self.following[:1]
        if self.follow_up_mode == "all":
            ends = (n for n, one in enumerate(self.following) if one.source != taken[0].source)
            taken = self.following[: next(ends, None)]
        del self.following[: len(taken)]
        self.on_change("follow_up", "taken", taken, self.following)
        return taken[0] if len(taken) == 1 else _joined(taken)

    def clear(self) -> tuple[Queued, ...]:
        """Remove and return all inputs and messages, in the order in which they would have begun runs."""
        following, steering = tuple(self.following), tuple(self.steering)
        self.following.clear()
        self.steering.clear()
        if following:
            self.on_change("follow_up", "cleared", following, ())
        if steering:
            self.on_change("steering", "cleared", steering, ())
        return following + steering


def checked_mode(name: str, mode: QueueMode) -> QueueMode:
    """Return the mode of a queue.

    Raises:
        ValueError: if it is not one of the modes.
    """
    if mode not in ("one", "all"):
        raise ValueError(f"`{name}`: expected `one` or `all`, got {mode!r}")
    return mode


def _joined(inputs: Sequence[Queued]) -> Queued:
    text = "\n\n".join(one.text for one in inputs if one.text)
    return Queued(text, inputs[0].source, tuple(part for one in inputs for part in one.attachments))


def user_message(text: str, attachments: Sequence[Attachment] = (), *, source: str = "user") -> UserMessage:
    """Build a user message from a text and attachments."""
    return UserMessage(content=(TextPart(text=whole_characters(text)), *attachments), source=source)
