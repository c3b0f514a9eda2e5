"""What a person is asked: whether a skill may have rights, whether a guard may let an effect or a tool call pass."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._printing import notice
from ._progressbar import Progressbar

if TYPE_CHECKING:
    from sideband.hooks import OpCall, ToolCall
    from sideband.loading import SkillSpec
    from sideband.ops import Grant

Ask = Callable[[str, str], Awaitable[bool]]
"""Shows a reason, asks a question below it, and tells whether the person said yes."""

_LONGEST_ARGUMENTS = 4_000


async def grant_all(skill: SkillSpec, missing: Grant) -> bool:
    """The answer to every skill that asks for rights, with ``--yes``."""
    notice(f"granted to `{skill.name}`: {missing}")
    return True


class Questions:
    """Puts what has to be decided to a person.

    Args:
        ask: asks; ``None`` if there is nobody.
        yes: whether everything is answered with yes, and said, instead.
    """

    def __init__(self, ask: Ask | None, *, yes: bool = False) -> None:
        self._ask = ask
        self._yes = yes

    def grant_asker(self) -> Any:
        """Who answers when a skill asks for rights: ``--yes``, the person, or nobody."""
        if self._yes:
            return grant_all
        return self._grant if self._ask else None

    def approver(self) -> Any:
        """Who answers when a guard asks about an effect: ``--yes``, the person, or nobody."""
        return self._approve_effect if self._yes or self._ask else None

    def tool_approver(self) -> Any:
        """Who answers when a guard asks about a tool call: ``--yes``, the person, or nobody."""
        return self._approve_tool if self._yes or self._ask else None

    async def _grant(self, skill: SkillSpec, missing: Grant) -> bool:
        wanted = [f"  {capability}" for capability in missing.texts()]
        return await self._answer(
            "\n".join([f"The skill `{skill.name}` ({skill.source}) asks for:", *wanted]),
            "Grant this, and remember it for this version of the skill? [y/N] ",
        )

    async def _approve_effect(self, question: str, effect: OpCall) -> bool:
        return await self._approve(effect.op, question, effect.params, effect.previewed)

    async def _approve_tool(self, question: str, call: ToolCall) -> bool:
        return await self._approve(call.tool, question, call.arguments)

    async def _approve(
        self, name: str, question: str, arguments: Mapping[str, Any], previewed: str | None = None
    ) -> bool:
        would = [f"it would: {previewed}"] if previewed else []
        reason = "\n".join([f"{name}: {question}", *_all_of(arguments), *would])
        if self._yes:
            notice(f"allowed with --yes: {reason}")
            return True
        return await self._answer(reason, "Allow it? [y/N] ")

    async def _answer(self, reason: str, question: str) -> bool:
        return self._ask is not None and await self._ask(reason, question)


def _all_of(arguments: Mapping[str, Any]) -> list[str]:
    """All arguments, as JSON so that none can look like another: nobody can agree to what is not shown."""
    lines = [f"  {name} = {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()]
    text = "\n".join(lines)
    hidden = len(text) - _LONGEST_ARGUMENTS
    if hidden <= 0:
        return lines
    half = _LONGEST_ARGUMENTS // 2
    return [text[:half], f"  (… {hidden:,} characters are not shown …)", text[-half:]]


def ask_at_terminal(bar: Progressbar) -> Ask | None:
    """Ask the person at the terminal, one thing at a time; ``None`` where there is none.

    Args:
        bar: the progress of the call; its line is left before a question.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    from anyio import Lock

    turn = Lock()

    async def ask(reason: str, question: str) -> bool:
        from anyio import wait_readable

        async with turn:
            bar.notice(reason)
            # Not `input`, which would mix the question into a result that goes to a file or a pipe.
            sys.stderr.write(question)
            sys.stderr.flush()
            answer = ""
            try:
                await wait_readable(sys.stdin)  # not in a thread, which nothing could end
                answer = sys.stdin.readline()
            finally:
                if not answer.endswith("\n"):  # the input is at its end, or the wait: the cursor is behind the question
                    sys.stderr.write("\n")
            return answer.strip().lower() in ("y", "yes")

    return ask
