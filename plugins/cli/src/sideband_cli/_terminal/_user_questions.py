"""Questions of tools to the user: how they are shown, and what a typed text answers.

No text of a model can imitate another question: its lines have a margin, and what the user types here allows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._questions import ANY_TEXT
from ._request_text import block, requester_of

if TYPE_CHECKING:
    from sideband.asking import Asker, UserAnswer, UserQuestion
    from sideband.ops import Origin

    from ._questions import Ask

_NUMBERS = re.compile(r"[0-9]{1,3}(?:(?: *, *| +)[0-9]{1,3})*\Z")


def asker_of(ask: Ask | None) -> Asker | None:
    """Return a function that asks the questions of a tool one after the other, each until its answer is valid.

    Without a terminal, it returns ``None``.
    """
    if ask is None:
        return None

    async def asked(questions: Sequence[UserQuestion], origin: Origin) -> list[UserAnswer]:
        answers = []
        for number, question in enumerate(questions, 1):
            lines = question_lines(question, origin, f"{number} of {len(questions)}")
            answer = None
            while answer is None:
                typed = await ask(lines, "Your answer:", ANY_TEXT)
                answer = answer_of(typed.reason, question)
                lines = [f"there is no such choice: {typed.reason}; {_legend(question)}"]
            answers.append(answer)
        return answers

    return asked


def question_lines(question: UserQuestion, origin: Origin, number: str) -> list[str]:
    """Return the lines that show a question."""
    requester = requester_of(origin) or "the agent"
    lines = [f"Question {number} of {requester}. Your answer is sent to the model; it allows nothing."]
    lines += block(question.text)
    for choice, option in enumerate(question.options, 1):
        lines += [f"  {choice}:", *block(option.text)]
        if option.description:
            lines += ["     that is", *block(option.description)]
    return [*lines, _legend(question)]


def answer_of(text: str, question: UserQuestion) -> UserAnswer | None:
    """Return the answer that a typed text is, or ``None`` if it has a number that no option has.

    Example:
        >>> from sideband.asking import QuestionOption, UserQuestion
        >>> days = UserQuestion("Which days?", (QuestionOption("Monday"), QuestionOption("Friday")), multiple=True)
        >>> answer_of("1, 2", days), answer_of("3", days), answer_of("Sunday", days)
        (UserAnswer(chosen=('Monday', 'Friday'), text=''), None, UserAnswer(chosen=(), text='Sunday'))
    """
    from sideband.asking import UserAnswer

    text = text.strip()
    if not question.options or not _NUMBERS.match(text):
        return UserAnswer(text=text)
    numbers = list(dict.fromkeys(int(one) for one in re.findall("[0-9]+", text)))
    if max(numbers) > len(question.options) or min(numbers) < 1 or (len(numbers) > 1 and not question.multiple):
        return None
    return UserAnswer(tuple(question.options[one - 1].text for one in numbers))


def _legend(question: UserQuestion) -> str:
    if not question.options:
        return "type your answer, or nothing to leave the question open"
    several = "numbers, such as 1 2" if question.multiple else "a number"
    return f"type {several}, or another answer, or nothing to leave the question open"
