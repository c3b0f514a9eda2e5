"""The tool `ask`: ask the user."""

from __future__ import annotations

from typing import Any

from sideband.asking import QuestionOption, UserAnswer, UserQuestion
from sideband.ops import Level
from sideband.tools import ToolContext, tool

from ._models import AskedQuestion, AskParams

_SECONDS = 86_400.0


@tool("ask", level=Level.SAFE, exclusive=True, timeout=_SECONDS)
async def ask(params: AskParams, ctx: ToolContext) -> list[dict[str, Any]]:
    """Ask the user up to five questions, and wait for the answers.

    Use it when you cannot go on without a decision that only the user can make. An answer is not a permission: the user
    is asked separately for what needs one.
    """
    answers = await ctx.ask([_question(one) for one in params.questions])
    return [_shown(asked, answer) for asked, answer in zip(params.questions, answers, strict=True)]


def _question(asked: AskedQuestion) -> UserQuestion:
    options = tuple(QuestionOption(one.text, one.description) for one in asked.options)
    return UserQuestion(asked.text, options, asked.multiple)


def _shown(asked: AskedQuestion, answer: UserAnswer) -> dict[str, Any]:
    given = {"chosen": list(answer.chosen), "text": answer.text}
    return {"question": asked.text, **({name: one for name, one in given.items() if one} or {"unanswered": True})}
