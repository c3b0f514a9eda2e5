"""The guard: allows, asks or denies, as the mode and the level say.

It asks about the effect where there is one, since only that has an exact preview, and about a tool call if the tool
changes something itself. So one action has one question.
"""

from __future__ import annotations

from attrs import define, field
from sideband.active_skills import pre_approvals
from sideband.contexts import AgentSession, ApprovalMode
from sideband.hooks import Allow, Ask, Deny, OpCall, ToolCall, ToolSelection, hookimpl
from sideband.ops import Level
from sideband.plugins import PluginContext

from ._config import Config
from ._matrix import MATRIX, Handling
from ._plan_tool import PLAN

_TOOL_CALL = "tool.call"
_MOST_ASKED = 4_096
_MODES = {
    "manual": "asks before each change",
    "assist": "asks before changes",
    "semi": "asks before changes of the level RESTRICTED and above",
    "full": "asks about nothing",
}


@define(eq=False)
class ApprovalGuard:
    """The guard of one agent, or of what a host does without one."""

    # The effects that were asked about: what they cause has no question of its own.
    _asked: dict[str, None] = field(factory=dict, init=False)
    _submits: bool = field(default=False, init=False)

    @hookimpl
    def tool_selection(self, event: ToolSelection, ctx: PluginContext) -> list[str] | None:
        """Offer the tool `plan` in the mode `plan` only."""
        self._submits = PLAN in event.selected
        if not self._submits or _mode(ctx) == "plan":
            return None
        return [name for name in event.selected if name != PLAN]

    @hookimpl(level=Level.MONITORED)
    def tool_call(self, event: ToolCall, ctx: PluginContext) -> Ask | Deny | None:
        """Decide about a tool that changes something itself, and about plans."""
        mode = _mode(ctx)
        if event.tool == PLAN:
            plan = str(event.arguments.get("plan", ""))
            return _about_plan(plan, _config(ctx).after_plan) if mode == "plan" else _no_plan(mode)
        if event.read_only or event.indirect:
            return None
        return self._handled(mode, event.level)

    @hookimpl(level=Level.CONTROLLED)
    async def op_call(self, event: OpCall, ctx: PluginContext) -> Allow | Ask | Deny | None:
        """Decide about an effect of a tool or a skill."""
        origin = event.origin
        if event.op == _TOOL_CALL or event.indirect or (origin.tool is None and origin.skill is None):
            return None
        answer = self._handled(_mode(ctx), event.level)
        if isinstance(answer, Ask):
            self._note(event.effect)
            if event.within in self._asked:
                return None
            if answer.lasting and (skill := await _allowing_skill(event, ctx)) is not None:
                return Allow(f"the active skill `{skill}` pre-approves it, as the user has granted")
        return answer

    def _handled(self, mode: ApprovalMode, level: Level) -> Ask | Deny | None:
        handling = MATRIX[mode][level]
        if handling is Handling.ALLOW:
            return None
        if handling is not Handling.DENY:
            question = f"Make this change? (mode `{mode}`, which {_MODES[mode]})"
            return Ask(question, lasting=handling is Handling.ASK)
        submit = (
            f"then call the tool `{PLAN}` with your plan"
            if self._submits
            else "then end your turn with your plan; the user can select another mode"
        )
        return Deny(
            "the approval mode is `plan`: nothing may be changed before the user has approved a plan",
            hint=f"examine what you need to know with tools that only read, {submit}",
        )

    def _note(self, effect: str) -> None:
        self._asked[effect] = None
        if len(self._asked) > _MOST_ASKED:
            del self._asked[next(iter(self._asked))]


async def _allowing_skill(event: OpCall, ctx: PluginContext) -> str | None:
    """Return the name of an active skill that pre-approves the tool of this effect, as the user has granted.

    A grant that was revoked, or was given to another session, does not count.
    """
    session: AgentSession | None = getattr(ctx, "session", None)
    if session is None or event.origin.tool is None:
        return None
    words = [str(event.params.get("binary", "")), *map(str, event.params.get("args", ()))]
    for one in pre_approvals(session.messages(), event.origin.tool, words):
        if one.uses is None or await ctx.is_granted(one.uses):
            return one.skill
    return None


def _about_plan(plan: str, following: ApprovalMode) -> Ask:
    return Ask(
        f"Carry out this plan? The mode is then `{following}`, which {_MODES[following]}.",
        lasting=False,
        preview=plan,
        mode=following,
    )


def _no_plan(mode: ApprovalMode) -> Deny:
    return Deny(f"no plan is needed in the approval mode `{mode}`", hint="do the task: the user is asked as it says")


def _mode(ctx: PluginContext) -> ApprovalMode:
    """Return the mode of the session; without an agent, the configured one."""
    of_session: ApprovalMode | None = getattr(ctx, "approval_mode", None)
    return of_session or _config(ctx).mode or "full"


def _config(ctx: PluginContext) -> Config:
    return ctx.config if isinstance(ctx.config, Config) else Config()
