"""The context of tools, and what they ask the user through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from ._agent import AgentContext


@frozen
class QuestionOption:
    """One of the answers that a question offers.

    Attributes:
        text: the answer.
        description: what it means; may be empty.
    """

    text: str
    description: str = ""


@frozen
class UserQuestion:
    """A question to the user. Its texts may come from a model, so a program that shows them must escape them.

    Attributes:
        text: the question.
        options: the answers that it offers. The user may always type another one.
        multiple: whether several options may be chosen.

    Example:
        >>> UserQuestion("Which port?", (QuestionOption("8443"), QuestionOption("9443", "as in production")))
        ... # doctest: +ELLIPSIS
        UserQuestion(text='Which port?', options=(...), multiple=False)
    """

    text: str
    options: tuple[QuestionOption, ...] = ()
    multiple: bool = False


@frozen
class UserAnswer:
    """The answer to a question. Without ``chosen`` and ``text``, the user left the question open.

    Attributes:
        chosen: the texts of the options that the user chose.
        text: what the user typed instead.
    """

    chosen: tuple[str, ...] = ()
    text: str = ""


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

    async def ask(self, questions: Sequence[UserQuestion]) -> tuple[UserAnswer, ...]:
        """Ask the user, and return an answer to each question. The answers allow nothing.

        Raises:
            SidebandError: if no user can be asked (``agent.asker``).
        """

    async def skills(self, *, again: bool = False) -> tuple[Mapping[str, Any], ...]:
        """Return the skills that the agent may use.

        With ``again``, they are searched for first. New and changed skills can then be used at once, and their tools
        are offered from the next turn on; the system prompt does not change.

        Each has ``name``, ``description``, ``location`` (the absolute path of its SKILL.md), ``origin``,
        ``allowed_tools`` (as written) and ``tools``.
        """

    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """Return the tools that the agent may call, sorted by name.

        Each has ``name``, as models see it, ``description``, ``source``, ``category``, and ``sent``: whether the last
        model request sent its definition.
        """
