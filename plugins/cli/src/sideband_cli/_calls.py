"""What `call`, `op` and `demo` show of a call while it runs and after it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._hosting import is_interactive
from ._output import Progressbar, format_table, notice

if TYPE_CHECKING:
    from sideband import CallResult, EffectReport
    from sideband.hooks import OpCall
    from sideband.loading import SkillSpec
    from sideband.ops import Grant

__all__ = ["Questions", "describe_effects", "effect_data", "grant_all", "result_data"]


async def grant_all(skill: SkillSpec, missing: Grant) -> bool:
    """The answer to every skill that asks for rights, with ``--yes``."""
    notice(f"granted to `{skill.name}`: {missing}")
    return True


class Questions:
    """What a person at the terminal is asked, one thing at a time; nobody is asked where there is none.

    Args:
        bar: the progress of the call; its line is left before a question.
    """

    def __init__(self, bar: Progressbar) -> None:
        from anyio import Lock

        self._bar = bar
        self._turn = Lock()

    def grant_asker(self, *, yes: bool) -> Any:
        """Who answers when a skill asks for rights: ``--yes``, the person at the terminal, or nobody."""
        if yes:
            return grant_all
        return self._grant if is_interactive() else None

    def approver(self) -> Any:
        """Who answers when a guard asks about an effect: the person at the terminal, or nobody."""
        return self._approve if is_interactive() else None

    async def _grant(self, skill: SkillSpec, missing: Grant) -> bool:
        wanted = [f"  {capability}" for capability in missing.texts()]
        return await self._yes(
            "\n".join([f"The skill `{skill.name}` ({skill.source}) asks for:", *wanted]),
            "Grant this, and remember it for this version of the skill? [y/N] ",
        )

    async def _approve(self, question: str, effect: OpCall) -> bool:
        return await self._yes(f"{effect.op}: {question}", "Allow it? [y/N] ")

    async def _yes(self, reason: str, question: str) -> bool:
        from anyio import wait_readable

        async with self._turn:
            self._bar.notice(reason)
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


def describe_effects(effects: tuple[EffectReport, ...]) -> str:
    """The effects of a call as a table."""
    rows = [
        [effect.id.rpartition("-")[2], effect.op, effect.status, f"{effect.ms:.1f}", effect.decision]
        for effect in effects
    ]
    return format_table(["#", "effect", "status", "ms", "decided by"], rows)


def effect_data(effect: EffectReport) -> dict[str, Any]:
    """An effect as data."""
    return {
        "id": effect.id,
        "op": effect.op,
        "status": effect.status,
        "decision": effect.decision,
        "ms": effect.ms,
        "params": dict(effect.params),
        "error": effect.error,
    }


def result_data(result: CallResult) -> dict[str, Any]:
    """A result as data: ``output`` and everything that is known about the call."""
    return {
        "output": result.output,
        "tool": result.tool,
        "call": result.call,
        "isolation": result.isolation,
        "grant": list(result.grant),
        "effects": [effect_data(effect) for effect in result.effects],
        "logs": [{"stream": line.stream, "text": line.text} for line in result.logs],
        "ms": result.ms,
    }
