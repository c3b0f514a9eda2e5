"""Questions of a session to its user that no effect causes: each is shown as a tool call of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from acp import RequestError
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    ToolKind,
)
from attrs import define, field, frozen
from pydantic import ValidationError

from ._text import shown
from ._tool_calls import Content
from ._updates import Updates

_LONGEST = 200_000

RequestPermission = Callable[[ToolCallUpdate, list[PermissionOption]], Awaitable[RequestPermissionResponse]]


@frozen
class OwnQuestion:
    """A question.

    Attributes:
        title: the question, on one line.
        texts: what it is about, in full.
        options: the answers.
        kind: the kind of tool call that it is shown as.
        results: what happens with each answer, for the user; without an answer, with the name ``""``.
    """

    title: str
    texts: Sequence[str] = field(repr=False)
    options: Sequence[PermissionOption]
    kind: ToolKind
    results: dict[str, str]

    @property
    def is_too_long(self) -> bool:
        """Whether it cannot be shown in full. A user cannot accept what is not shown."""
        return sum(map(len, self.texts)) > _LONGEST


@define(eq=False)
class OwnQuestions:
    """Asks the questions of one session.

    Args:
        updates: the updates of the session.
        request: asks the user of the client.
    """

    updates: Updates = field(repr=False)
    request: RequestPermission = field(repr=False)
    _asked: int = field(default=0, init=False)

    async def ask(self, question: OwnQuestion) -> str:
        """Ask, and return the name of the answer; ``""`` if the user gave none of those that are offered."""
        self._asked += 1
        name = f"question-{self._asked}"
        content: Content = [shown(one) for one in question.texts]
        self.updates.put(
            ToolCallStart(
                session_update="tool_call",
                tool_call_id=name,
                title=question.title,
                kind=question.kind,
                status="pending",
                content=content,
            )
        )
        answer = ""
        try:
            await self.updates.sent()
            call = ToolCallUpdate(
                tool_call_id=name, title=question.title, kind=question.kind, status="pending", content=content
            )
            response = await self.request(call, list(question.options))
            if isinstance(response.outcome, AllowedOutcome):
                offered = {one.option_id for one in question.options}
                answer = response.outcome.option_id if response.outcome.option_id in offered else ""
        except (RequestError, ValidationError, ConnectionError):
            pass  # the client did not ask its user
        finally:
            result: Content = [shown(question.results[answer])]
            self.updates.put(
                ToolCallProgress(
                    session_update="tool_call_update", tool_call_id=name, status="completed", content=result
                )
            )
        return answer
