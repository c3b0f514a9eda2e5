"""What each mode asks about, and which mode holds."""

from pathlib import Path
from typing import Annotated

import pytest
from sideband import Plugin
from sideband.approvals import Approval
from sideband.contexts import APPROVAL_MODES
from sideband.grants import GrantUnknown, given_grants, revoke_grant
from sideband.hooks import ApprovalModeSelect
from sideband.ledger import query
from sideband.ops import FromHost, Level, OpContext, OpFamily, op
from sideband.tools import ToolContext, tool
from sideband_agent import Agent, ApprovalModeUnavailable, ApprovalModeUnknown
from sideband_guard_approval._matrix import MATRIX, Handling
from sideband_scripted import Turn

from .conftest import Empty, Named

pytestmark = pytest.mark.anyio
ONCE = Approval("allow", by="me")
WRITE = ("write", {"path": "a.txt", "content": "hi\n"})


async def test_agent_in_manual_mode_asks_once_before_it_writes_a_file(stage, work):
    async with stage(ONCE, mode="manual") as on:
        assert await on.calls(WRITE) == ["created a.txt (1 line, 3 bytes)"]
        (request,) = on.person.asked
        assert (request.kind, request.subject, request.effect["path"]) == ("effect", "files.write", f"{work}/a.txt")
        assert (work / "a.txt").read_text() == "hi\n"


def test_readme_has_the_table_of_the_modes():
    rows = [
        f"| level of a tool call or an effect | {' | '.join(f'`{mode}`' for mode in APPROVAL_MODES)} |",
        "|---" * (len(APPROVAL_MODES) + 1) + "|",
        *(f"| {level.name} | {' | '.join(MATRIX[mode][level].value for mode in APPROVAL_MODES)} |" for level in Level),
    ]
    assert "\n".join(rows) in (Path(__file__).parents[1] / "README.md").read_text()


async def test_each_mode_handles_effects_and_tools_of_each_level_as_the_table_says(stage):
    async with stage() as on:
        for mode in APPROVAL_MODES:
            await on.agent.select_approval_mode(mode)
            for level in Level:
                for kind in ("by_op", "itself"):
                    on.person.asked.clear()
                    on.person.answers = [ONCE]
                    (text,) = await on.calls((f"{kind}_{level.name.lower()}", {"name": f"{mode} {kind}"}))
                    offered = [list(one.grants) for one in on.person.asked]
                    assert (offered, text == "changed", "`plan`" in text) == {
                        Handling.ALLOW: ([], True, False),
                        Handling.ASK: ([["session", "always"]], True, False),
                        Handling.ASK_EACH_TIME: ([[]], True, False),
                        Handling.DENY: ([], False, True),
                    }[MATRIX[mode][level]], (mode, level, kind)


async def test_reading_is_never_asked_about(stage, work):
    (work / "a.txt").write_text("hi\n")
    async with stage(mode="manual") as on:
        for name, arguments in [("read", {"path": "a.txt"}), ("list", {}), ("glob", {"pattern": "*"})]:
            await on.calls((name, arguments))
        assert on.asked == []


async def test_tool_that_declares_that_it_only_reads_is_not_asked_about(stage):
    @tool("look", level=Level.CONTROLLED, read_only=True)
    async def look(params: Empty, ctx: ToolContext) -> str:
        """Look."""
        return "seen"

    async with stage(mode="manual", more=[Plugin("tool", "look", look)]) as on:
        assert await on.calls(("look", {})) == ["seen"]
        assert on.asked == []


async def test_effects_of_an_effect_that_was_asked_about_are_not_asked_about(stage):
    @op("outer.do", requires="outer", level=Level.CONTROLLED)
    async def outer(params: Empty, ctx: OpContext) -> None:
        """Do it in two effects."""
        await ctx.dispatch("things.controlled", {"name": "a"})
        await ctx.dispatch("things.restricted", {"name": "b"})

    @op("outer.look", requires="outer", level=Level.MONITORED)
    async def looking(params: Empty, ctx: OpContext) -> None:
        """Change something while looking."""
        await ctx.dispatch("things.controlled", {"name": "c"})

    @tool("both", resume="replay")
    async def both(params: Empty, ctx: ToolContext) -> str:
        """Cause both."""
        await ctx.dispatch("outer.do", {}, uses=["outer", "things"])
        await ctx.dispatch("outer.look", {}, uses=["outer", "things"])
        return "changed"

    class Outer:
        @staticmethod
        def sideband_ops():
            return OpFamily(name="outer", ops=(outer, looking))

    more = [Plugin("op", "outer", Outer), Plugin("tool", "both", both)]
    async with stage(ONCE, ONCE, mode="manual", more=more, grants={"plugin:both": ["outer", "things"]}) as on:
        assert await on.calls(("both", {})) == ["changed"]
        assert on.asked == ["outer.do", "things.controlled"]


async def test_effects_of_an_approved_effect_are_denied_once_the_user_selects_plan(stage):
    @op("outer.do", requires="outer", level=Level.CONTROLLED)
    async def outer(params: Empty, ctx: OpContext) -> None:
        """Let the user select another mode, then change something."""
        await on.agent.select_approval_mode("plan")
        await ctx.dispatch("things.controlled", {})

    @tool("change", resume="replay")
    async def change(params: Empty, ctx: ToolContext) -> str:
        """Change it."""
        await ctx.dispatch("outer.do", {}, uses=["outer", "things"])
        return "changed"

    class Outer:
        @staticmethod
        def sideband_ops():
            return OpFamily(name="outer", ops=(outer,))

    more = [Plugin("op", "outer", Outer), Plugin("tool", "change", change)]
    async with stage(ONCE, mode="manual", more=more, grants={"plugin:change": ["outer", "things"]}) as on:
        (text,) = await on.calls(("change", {}))
        assert "the approval mode is `plan`" in text


async def test_what_the_user_does_directly_is_not_asked_about(stage):
    async with stage(mode="manual") as on:
        await on.agent.host.op("things.privileged", {"name": "a"})
        assert on.asked == []


async def test_denied_new_file_is_not_tried_again(stage):
    async with stage(mode="manual") as on:
        await on.calls(WRITE)
        assert len(await query(on.agent.host.ledger.folder, op="files.write")) == 1


async def test_reason_of_a_no_reaches_the_model_and_the_no_holds_for_the_run(stage, work):
    async with stage(Approval("deny", reason="not on Fridays", by="me"), mode="manual") as on:
        texts = await on.calls(WRITE, turns=[Turn(tool_calls=[WRITE])])
        assert len(texts) == 2
        assert all("not on Fridays" in text for text in texts)
        assert on.asked == ["files.write"]
        assert not (work / "a.txt").exists()


async def test_parallel_equal_changes_are_asked_about_once_and_a_lasting_answer_holds_for_all(stage):
    async with stage(Approval("allow", "session", by="me"), mode="assist") as on:
        calls = [("by_op_controlled", {"name": "a"}), ("itself_controlled", {"name": "a"})] * 3
        on.person.answers *= 2
        assert await on.calls(*calls) == ["changed"] * 6
        assert sorted(on.asked) == ["itself_controlled", "things.controlled"]


async def test_lasting_answer_gives_exactly_the_grant_that_was_shown(stage, work):
    async with stage(Approval("allow", "always", by="me"), ONCE, mode="assist") as on:
        await on.calls(WRITE)
        assert on.person.asked[0].grants["always"] == (f"files:hidden=no,mode=write,path={work}/a.txt,place=system",)
        (work / "a.txt").unlink()
        await on.calls(WRITE)
        assert on.asked == ["files.write"]
        await on.calls(("write", {"path": "b.txt", "content": "hi\n"}))
        assert on.asked == ["files.write", "files.write"]


async def test_lasting_answers_do_not_count_in_manual_mode(stage):
    async with stage(Approval("allow", "always", by="me"), ONCE, mode="assist") as on:
        await on.calls(("itself_controlled", {}))
        await on.agent.select_approval_mode("manual")
        assert await on.calls(("itself_controlled", {})) == ["changed"]
        assert len(on.asked) == 2


async def test_mode_that_is_selected_during_a_run_holds_from_the_next_change_on(stage):
    async with stage(mode="full") as on:

        @tool("wait")
        async def wait(params: Empty, ctx: ToolContext) -> str:
            """Wait until the user has selected another mode."""
            await on.agent.select_approval_mode("manual")
            return ctx.approval_mode

        on.agent.offer(wait)
        turns = [Turn(tool_calls=[("wait", {})]), Turn(tool_calls=[("itself_controlled", {})])]
        texts = await on.calls(("itself_controlled", {}), turns=turns)
        assert texts[:2] == ["changed", "manual"]
        assert on.asked == ["itself_controlled"]


async def test_children_have_the_mode_of_their_parent_also_after_it_was_changed(stage):
    async with stage(ONCE, mode="full") as on:

        @tool("spawn")
        async def spawn(params: Empty, ctx: ToolContext) -> str:
            """Run a child."""
            return (await ctx.spawn_child("go")).text

        on.agent.offer(spawn)
        child = [Turn(tool_calls=[("by_op_controlled", {})]), "child"]
        await on.calls(("spawn", {}), turns=child)
        assert on.asked == []
        await on.agent.select_approval_mode("manual")
        await on.calls(("spawn", {}), turns=child)
        assert on.asked == ["things.controlled"]


async def test_change_of_the_mode_is_an_event_and_each_effect_is_recorded_with_its_mode(stage):
    events = []
    async with stage(mode="semi", on_event=events.append) as on:
        await on.calls(("by_op_controlled", {}))
        await on.agent.select_approval_mode("full")
        await on.agent.select_approval_mode("full")
        await on.calls(("by_op_controlled", {}))
        records = await query(on.agent.host.ledger.folder, session=on.agent.session.id, limit=20)
        session = on.agent.session.id
    assert [one.origin.approval_mode for one in records if one.op == "things.controlled"] == ["full", "semi"]
    assert [one.origin.approval_mode for one in records if one.op == "tool.call"] == ["full", "semi"]
    assert [one for one in events if one.hook == "approval_mode_select"] == [
        ApprovalModeSelect(session, "full", previous="semi", source="set")
    ]


async def test_mode_is_restored_with_its_session_and_a_fork_has_it_but_a_new_session_has_not(stage, tmp_path):
    async with stage(mode="manual") as on:
        await on.agent.select_approval_mode("semi")
        first = on.agent.session.id
        await on.agent.fork()
        forked = on.agent.approval_mode
        await on.agent.new_session()
        assert (forked, on.agent.approval_mode) == ("semi", "manual")
        await on.agent.switch_session(first)
        assert on.agent.approval_mode == "semi"
    async with stage(mode="manual", session=first) as on:
        assert on.agent.approval_mode == "semi"


async def test_change_that_waits_for_an_approval_happens_once_after_a_restart(stage, work):
    async with stage(mode="manual", approver=False) as on:
        on.script.turns += [Turn(tool_calls=[WRITE])]
        parked = await on.agent.invoke("go")
        assert (parked.status, parked.error["code"]) == ("parked", "approval.needed")
        assert not (work / "a.txt").exists()
        session = on.agent.session.id
    async with stage(mode="manual", approver=False, session=session) as on:
        (stored,) = await on.agent.host.approvals.list()
        assert stored.request.subject == "files.write"
        await on.agent.host.approvals.answer(stored.request.id, ONCE)
        on.script.turns += ["done"]
        resumed = await on.agent.resume()
        assert on.texts(resumed)[-1] == "created a.txt (1 line, 3 bytes)"
        assert (await on.agent.host.approvals.get(stored.request.id)).state == "used"


async def test_configured_mode_wins_over_that_of_the_program_and_the_selected_one_over_both(stage):
    async with stage() as on:
        assert on.agent.approval_mode == "full"
    async with stage(approval_mode="assist") as on:
        assert on.agent.approval_mode == "assist"
    async with stage(mode="semi", approval_mode="assist") as on:
        assert on.agent.approval_mode == "semi"
        await on.agent.select_approval_mode("manual")
        assert on.agent.approval_mode == "manual"


async def test_tools_and_ops_get_the_mode_from_the_host_whatever_a_model_sends(stage):
    class Asking(Named):
        mode: Annotated[str, FromHost("approval_mode")]

    @tool("tell")
    async def tell(params: Asking, ctx: ToolContext) -> str:
        """Return the mode."""
        return f"{params.mode} {ctx.approval_mode}"

    async with stage(mode="semi", more=[Plugin("tool", "tell", tell)]) as on:
        assert await on.calls(("tell", {"mode": "full"})) == ["semi semi"]


async def test_mode_that_does_not_exist_or_would_have_no_effect_is_refused(stage):
    async with stage(mode="semi") as on:
        with pytest.raises(ApprovalModeUnknown, match="unknown approval mode: `auto`"):
            await on.agent.select_approval_mode("auto")
        assert on.agent.approval_mode == "semi"


async def test_stored_mode_that_is_unknown_counts_as_manual(stage):
    async with stage(mode="full") as on:
        session = on.agent.session.id
        await on.agent.host.store.put(f"session/{session}/approval-mode", {"mode": "newer"})
    async with stage(mode="full", session=session) as on:
        assert on.agent.approval_mode == "manual"


async def test_deleted_session_leaves_no_mode(stage):
    async with stage(mode="full") as on:
        await on.agent.select_approval_mode("manual")
        session = on.agent.session.id
        await on.agent.new_session()
        await on.agent.sessions.delete(session)
        assert await on.agent.host.store.keys(f"session/{session}/") == ()


async def test_mode_without_a_guard_that_has_modes_is_refused_because_it_would_have_no_effect(sideband_host):
    async with sideband_host() as host, Agent(host) as agent:
        assert agent.approval_mode is None
        with pytest.raises(ApprovalModeUnavailable, match="would have no effect"):
            await agent.select_approval_mode("plan")


async def test_question_shows_the_difference_to_the_file(stage, work):
    (work / "a.txt").write_text("one\ntwo\n")
    async with stage(ONCE, mode="manual") as on:
        edit = ("edit", {"path": "a.txt", "edits": [{"old": "two", "new": "three"}]})
        await on.calls(("read", {"path": "a.txt"}), turns=[Turn(tool_calls=[edit])])
        (request,) = on.person.asked
        assert request.preview.endswith(", 1 line added, 1 removed\n@@ -1,2 +1,2 @@\n one\n-two\n+three")
        assert (work / "a.txt").read_text() == "one\nthree\n"


async def test_question_shows_no_content_of_a_file_that_the_requester_may_not_read(stage, work):
    @tool("blind", resume="replay")
    async def blind(params: Empty, ctx: ToolContext) -> str:
        """Replace a file that it may not read."""
        request = {"path": f"{work}/a.txt", "content": "new\n", "overwrite": True}
        await ctx.dispatch("files.write", request, uses=[f"files:path={work}/*,mode=write"])
        return "changed"

    (work / "a.txt").write_text("private\n")
    grants = {"plugin:blind": [f"files:path={work}/*,mode=write"]}
    async with stage(ONCE, mode="manual", more=[Plugin("tool", "blind", blind)], grants=grants) as on:
        assert await on.calls(("blind", {})) == ["changed"]
        assert on.person.asked[0].preview.endswith(", 1 line added, 1 removed")


async def test_answer_for_the_session_is_listed_as_a_grant_and_revoking_it_leaves_the_others(stage):
    async with stage(*[Approval("allow", "session", by="me")] * 2, ONCE, mode="assist") as on:
        await on.calls(("by_op_controlled", {}), ("itself_controlled", {}))
        host, session = on.agent.host, on.agent.session.id
        effect, call = sorted(await given_grants(host), key=lambda one: one.kind)
        assert (effect.kind, effect.subject, effect.requester) == ("effect", "things.controlled", "by_op_controlled")
        assert (call.kind, call.subject, call.capabilities) == (
            "tool",
            "itself_controlled",
            ("tool:name=itself_controlled",),
        )
        assert {(one.scope, one.session, one.by) for one in (effect, call)} == {("session", session, "me")}
        await revoke_grant(host, call.id)
        assert await given_grants(host) == [effect]
        await on.calls(("by_op_controlled", {}), ("itself_controlled", {}))
        assert on.asked[2:] == ["itself_controlled"]
        with pytest.raises(GrantUnknown):
            await revoke_grant(host, call.id)
