"""Questions to the user: grants for skills, and approvals of effects and tool calls."""

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
"""Shows a reason, asks a question below it, and returns whether the user answered yes."""

_MAX_ARGUMENTS_LENGTH = 4_000


async def grant_all(skill: SkillSpec, missing: Grant) -> bool:
    """Grant all capabilities that a skill requests and print them, as ``--yes`` does."""
    notice(f"granted to `{skill.name}`: {missing}")
    return True


class Questions:
    """Asks the user for grants and approvals.

    Args:
        ask: asks a question; ``None`` without a terminal.
        yes: whether to answer and print every question with yes instead.
    """

    def __init__(self, ask: Ask | None, *, yes: bool = False) -> None:
        self._ask = ask
        self._yes = yes

    def grant_asker(self) -> Any:
        """Return a function that decides about grants; ``None`` without ``--yes`` and a terminal."""
        if self._yes:
            return grant_all
        return self._grant if self._ask else None

    def approver(self) -> Any:
        """Return a function that decides about effects; ``None`` without ``--yes`` and a terminal."""
        return self._approve_effect if self._yes or self._ask else None

    def tool_approver(self) -> Any:
        """Return a function that decides about tool calls; ``None`` without ``--yes`` and a terminal."""
        return self._approve_tool if self._yes or self._ask else None

    async def _grant(self, skill: SkillSpec, missing: Grant) -> bool:
        requested = [f"  {capability}" for capability in missing.texts()]
        return await self._answer(
            "\n".join([f"The skill `{skill.name}` ({skill.source}) requests:", *requested]),
            "Grant this and remember it for this version of the skill? [y/N] ",
        )

    async def _approve_effect(self, question: str, effect: OpCall) -> bool:
        return await self._approve(effect.op, question, effect.params, effect.previewed)

    async def _approve_tool(self, question: str, call: ToolCall) -> bool:
        return await self._approve(call.tool, question, call.arguments)

    async def _approve(
        self, name: str, question: str, arguments: Mapping[str, Any], previewed: str | None = None
    ) -> bool:
        preview = [f"preview: {previewed}"] if previewed else []
        reason = "\n".join([f"{name}: {question}", *_argument_lines(arguments), *preview])
        if self._yes:
            notice(f"allowed by --yes: {reason}")
            return True
        return await self._answer(reason, "Allow this? [y/N] ")

    async def _answer(self, reason: str, question: str) -> bool:
        return self._ask is not None and await self._ask(reason, question)


def _argument_lines(arguments: Mapping[str, Any]) -> list[str]:
    """Return all arguments, as JSON so that none can imitate another. Users cannot approve what they do not see."""
    lines = [f"  {name} = {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()]
    text = "\n".join(lines)
    hidden = len(text) - _MAX_ARGUMENTS_LENGTH
    if hidden <= 0:
        return lines
    half = _MAX_ARGUMENTS_LENGTH // 2
    return [text[:half], f"  (… {hidden:,} characters omitted …)", text[-half:]]


def ask_at_terminal(bar: Progressbar) -> Ask | None:
    """Return a function that asks one question at a time at the terminal; ``None`` without a terminal.

    Args:
        bar: the progress bar, whose line is ended before a question.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    from anyio import Lock

    turn = Lock()

    async def ask(reason: str, question: str) -> bool:
        from anyio import wait_readable

        async with turn:
            bar.notice(reason)
            # Not input(), which writes the question to standard output, and so into a redirected result.
            sys.stderr.write(question)
            sys.stderr.flush()
            answer = ""
            try:
                await wait_readable(sys.stdin)  # a thread could not be cancelled
                answer = sys.stdin.readline()
            finally:
                if not answer.endswith("\n"):  # end of input or cancelled: the cursor is still after the question
                    sys.stderr.write("\n")
            return answer.strip().lower() in ("y", "yes")

    return ask
