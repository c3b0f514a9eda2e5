"""The spans of runs, turns, model calls, tools, effects, child agents, approvals and workers."""

import os

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.approvals import Approval
from sideband.hooks import AgentEnd, AgentStart, Ask, Deny, SubagentEnd, SubagentStart, TurnStart
from sideband.ops import Level, OpContext, OpDenied, OpError, OpFamily, op
from sideband.tools import tool
from sideband.workers import WorkerExited
from sideband_otel._providers import open_telemetry
from sideband_scripted import Hang, Turn

pytestmark = pytest.mark.anyio

WORK = Turn(tool_calls=[("work", {"text": "a"}), ("work", {"text": "b"})])
DELEGATE = Turn(tool_calls=[("delegate", {})])


def children(collector, span):
    return sorted(one.name for one in collector.spans if one.parent == span.id)


def guard(function, hook="op_call"):
    """Return a guard with this implementation of a hook."""
    function.__name__ = hook
    return Plugin("guard", "careful", type("Guard", (), {hook: staticmethod(hookimpl(function))}))


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_run_is_a_trace_of_turns_model_calls_tools_and_effects(open_agent, sending):
    async with open_agent([WORK, "done"]) as agent:
        result = await agent.invoke("go on")
    run = sending.named("invoke_agent")
    turns = sorted((span for span in sending.spans if span.name == "turn"), key=lambda span: span.start)
    tools = [span for span in sending.spans if span.name == "execute_tool work"]
    assert children(sending, run) == ["turn", "turn"]
    assert [children(sending, turn) for turn in turns] == [
        ["chat test", "execute_tool work", "execute_tool work"],
        ["chat test"],
    ]
    assert [children(sending, tool) for tool in tools] == [["llm.models"], ["llm.models"]]
    assert len({span.trace for span in sending.spans if span.attributes.get("sideband.run.id") == result.run}) == 1
    assert run.parent == ""
    assert run.start <= turns[0].start <= turns[0].end <= turns[1].end <= run.end
    assert run.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.conversation.id": result.session,
        "sideband.run.id": result.run,
        "sideband.run.source": "interactive",
        "sideband.run.reason": "completed",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "test",
    }
    assert not any(span.failed for span in sending.spans)


async def test_model_call_follows_the_conventions(open_agent, sending):
    async with open_agent(["done"], settings={"agent": {"model": "scripted:test", "max_tokens": 100}}) as agent:
        usage = (await agent.invoke("go on")).usage
    span = sending.named("chat test")
    assert span.kind == 3  # a client
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "test",
        "gen_ai.response.model": "test",
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "sideband.op": "llm.generate",
        "sideband.status": "done",
    }
    assert {name: span.attributes.get(name) for name in expected} == expected


async def test_tool_call_follows_the_conventions(open_agent, sending):
    async with open_agent([Turn(tool_calls=[("work", {"text": "a"})]), "done"]) as agent:
        await agent.invoke("go on")
    attributes = sending.named("execute_tool work").attributes
    assert attributes["gen_ai.operation.name"] == "execute_tool"
    assert attributes["gen_ai.tool.name"] == "work"
    assert attributes["gen_ai.tool.call.id"].startswith("call_")
    assert attributes["gen_ai.tool.type"] == "function"


async def test_child_agent_is_a_part_of_the_tool_call_that_started_it(open_agent, sending):
    async with open_agent([DELEGATE, "a child's answer", "done"]) as agent:
        await agent.invoke("go on")
    tool = sending.named("execute_tool delegate")
    inner = [span for span in sending.spans if span.name == "invoke_agent" and span.parent]
    assert [span.parent for span in inner] == [tool.id]
    assert len({span.trace for span in sending.spans if span.name in {"invoke_agent", "chat test", "turn"}}) == 1


async def test_child_agent_that_no_tool_call_started_is_a_part_of_its_turn(sending):
    opened = open_telemetry(os.environ)
    telemetry = opened.telemetry
    telemetry.begin_run(AgentStart("outer"), "parent")
    telemetry.begin_turn(TurnStart("outer", 0))
    telemetry.begin_child(SubagentStart("child", "count", [], run="outer"))
    telemetry.begin_run(AgentStart("inner"), "child")
    telemetry.end_run(AgentEnd("inner", "completed"))
    telemetry.end_child(SubagentEnd("child", "completed"))
    telemetry.begin_run(AgentStart("later"), "child")
    telemetry.begin_child(SubagentStart("between", "count", []))
    telemetry.begin_run(AgentStart("unrelated"), "between")
    await opened.close(60)
    runs = {span.attributes["sideband.run.id"]: span for span in sending.spans if span.name == "invoke_agent"}
    turn = sending.named("turn")
    assert (runs["inner"].parent, runs["inner"].trace) == (turn.id, runs["outer"].trace)
    assert (runs["later"].parent, runs["unrelated"].parent) == ("", "")
    assert len({runs["outer"].trace, runs["later"].trace, runs["unrelated"].trace}) == 3


async def test_run_that_fails_has_an_error(open_agent, sending):
    async with open_agent([]) as agent:
        result = await agent.invoke("go on")
    assert result.status == "failed"
    run = sending.named("invoke_agent")
    assert (run.failed, run.attributes["sideband.run.reason"]) == (True, "error")
    assert run.attributes["error.type"] == sending.named("chat test").attributes["error.type"] == result.error["code"]


class Question(BaseModel):
    text: str = "who?"


@tool("ask")
async def ask(params: Question, ctx) -> str:
    """Ask another model."""
    message = {"role": "user", "content": [{"type": "text", "text": params.text}]}
    return (await ctx.dispatch("llm.generate", {"model": "scripted:other", "messages": [message]}))["model"]


async def test_run_has_the_model_of_its_agent_and_not_that_of_a_tool(open_agent, sending):
    waits = guard(lambda event: Ask("Really?") if event.tool == "work" else None, "tool_call")
    turns = [Turn(tool_calls=[("ask", {}), ("work", {})]), "another model"]
    async with open_agent(turns, waits, Plugin("tool", "ask", ask)) as agent:
        assert (await agent.invoke("go on")).status == "parked"
    assert sending.named("chat other").start > sending.named("chat test").start
    assert sending.named("invoke_agent").attributes["gen_ai.request.model"] == "test"


async def test_denied_effect_has_the_code_of_its_error_and_no_message(open_host, sending):
    async with open_host(guard(lambda event: Deny("secret-reason"))) as host:
        with pytest.raises(OpDenied):
            await host.op("llm.models", {})
    span = sending.named("llm.models")
    assert (span.failed, span.attributes["sideband.status"], span.attributes["error.type"]) == (
        True,
        "denied",
        "op.denied",
    )
    assert span.message == ""
    assert span.events == []


class Step(BaseModel):
    text: str = ""


@pytest.mark.parametrize("goes_on", [True, False])
async def test_run_that_is_cancelled_is_written_when_its_session_goes_on_or_the_host_is_closed(
    open_agent, sending, goes_on
):
    waits = Hang()
    async with open_agent([WORK, waits, "done"]) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "go on")
            await waits.reached.wait()
            tasks.cancel_scope.cancel()
        if goes_on:
            await agent.invoke("and on")
    cancelled = next(span for span in sending.spans if span.name == "invoke_agent")
    (chat,) = [span for span in sending.spans if span.attributes.get("error.type") == "op.cancelled"]
    turns = sorted((one for one in sending.spans if one.parent == cancelled.id), key=lambda one: one.start)
    assert [turn.name for turn in turns] == ["turn", "turn"]
    assert chat.parent == turns[1].id
    assert (cancelled.attributes["sideband.run.reason"], cancelled.failed) == ("cancelled", False)
    assert cancelled.end == turns[1].end >= chat.end
    reasons = {
        attributes["sideband.run.reason"]: point.count for attributes, point in sending.metrics["sideband.run.duration"]
    }
    assert reasons == {"cancelled": 1} | ({"completed": 1} if goes_on else {})
    assert [point.as_int for _, point in sending.metrics["sideband.run.active"]] == [0]


@op("flow.inner", level=Level.SAFE)
async def inner(params: Step, ctx: OpContext) -> None:
    """Do nothing."""


@op("flow.outer", level=Level.SAFE)
async def outer(params: Step, ctx: OpContext) -> None:
    await ctx.dispatch("flow.inner", {})


class Flow:
    @staticmethod
    def sideband_ops():
        return OpFamily("flow", (inner, outer))


async def test_effect_that_another_effect_causes_is_its_child(open_host, sending):
    async with open_host(Plugin("op", "flow", Flow)) as host:
        await host.op("flow.outer", {})
    outer, inner = sending.named("flow.outer"), sending.named("flow.inner")
    assert (inner.parent, inner.trace) == (outer.id, outer.trace)
    assert outer.start <= inner.start <= inner.end <= outer.end


async def test_request_names_its_receiver_without_path_and_query(open_host, sending):
    async with open_host() as host:
        with pytest.raises(OpError):
            await host.op("http.get", {"url": "http://127.0.0.1:9/secret-path?secret-query=1"})
    attributes = sending.named("http.get").attributes
    assert (attributes["server.address"], attributes["server.port"]) == ("127.0.0.1", 9)
    assert "secret-" not in repr(sending.raw)


async def test_receiver_of_a_denied_request_is_not_named(open_host, sending):
    async with open_host() as host:
        with pytest.raises(OpDenied):
            await host.op("http.get", {"url": "http://chosen.example/"}, grants=["http:host=other.example"])
    assert "chosen" not in repr(sending.raw)


async def test_receiver_of_a_request_that_a_guard_denies_is_not_named(open_host, sending):
    async with open_host(guard(lambda event: Deny("no") if event.op == "http.get" else None)) as host:
        with pytest.raises(OpDenied):
            await host.op("http.get", {"url": "http://chosen.example/"}, grants=["http"])
    assert sending.named("http.get").attributes["error.type"] == "op.denied"
    assert "chosen" not in repr(sending.raw)


async def test_refused_approval_has_no_scope(open_host, sending):
    async def approver(request):
        return Approval("deny")

    async with open_host(guard(lambda event: Ask("Really?")), approver=approver) as host:
        with pytest.raises(OpDenied):
            await host.op("llm.models", {})
    span = sending.named("approval")
    assert (span.attributes["sideband.approval.verdict"], span.failed) == ("deny", False)
    assert "sideband.approval.scope" not in span.attributes


TRACED = """
from sideband.skill import tool, trace

@tool
async def now() -> list:
    return [await trace.parent(host="queue.example") for _ in range(2)]
"""


async def test_effects_of_a_call_without_an_agent_share_a_trace(open_host, sending, skills):
    (skills / "clock" / "SKILL.md").write_text(
        "---\nname: clock\ndescription: Returns the time.\nmetadata:\n"
        "  sideband.capabilities: 'trace:host=queue.example'\n---\n"
    )
    (skills / "clock" / "tools.py").write_text(TRACED)
    grants = {"clock": ["trace:host=queue.example"]}
    async with open_host(skill_dirs=[skills], grants=grants) as host:
        found = [parent for _ in range(2) for parent in await host.call("clock.now")]
    spans = sorted((span for span in sending.spans if span.name == "trace.parent"), key=lambda span: span.start)
    assert [f"00-{span.trace}-{span.id}-01" for span in spans] == found
    first, second, third, fourth = [span.trace for span in spans]
    assert first == second != third == fourth


async def test_approval_is_a_span_of_its_run(open_agent, sending):
    async def approver(request):
        return Approval("allow")

    asking = guard(lambda event: Ask("Really?") if event.op == "llm.models" else None)
    work = Turn(tool_calls=[("work", {})])
    async with open_agent([work, "done"], asking, agent={"approver": approver}) as agent:
        await agent.invoke("go on")
    span = sending.named("approval")
    expected = {
        "sideband.approval.about": "effect",
        "sideband.approval.subject": "llm.models",
        "sideband.approval.verdict": "allow",
        "sideband.approval.scope": "once",
    }
    assert {name: span.attributes.get(name) for name in expected} == expected
    assert span.parent in {one.id for one in sending.spans if one.name == "turn"}


async def test_worker_is_a_span_of_its_own_trace(open_host, sending, skills):
    async with open_host(skill_dirs=[skills]) as host:
        assert await host.call("clock.now") == 1
    span = sending.named("worker")
    assert (span.parent, span.failed) == ("", False)
    assert (span.attributes["sideband.status"], span.attributes["sideband.isolation"]) == ("retired", "none")


async def test_worker_that_exits_has_an_error(open_host, sending, skills):
    (skills / "clock" / "tools.py").write_text(
        "import os\nfrom sideband.skill import tool\n\n@tool\nasync def now() -> int:\n    os._exit(1)\n"
    )
    async with open_host(skill_dirs=[skills]) as host:
        with pytest.raises(WorkerExited):
            await host.call("clock.now")
    span = sending.named("worker")
    assert (span.failed, span.attributes["sideband.status"], span.attributes["error.type"]) == (
        True,
        "failed",
        "worker.exited",
    )
    ((labels, _),) = sending.metrics["sideband.worker.ended"]
    assert labels["error.type"] == "worker.exited"


async def test_resumed_run_continues_its_trace(open_agent, sending):
    asking = guard(lambda event: Ask("Really?"), "tool_call")
    work = Turn(tool_calls=[("work", {})])
    async with open_agent([work, "done"], asking) as agent:
        parked = await agent.invoke("go on")
        assert parked.status == "parked"
        await agent.host.approvals.answer(parked.requests[0], Approval("allow"))
        resumed = await agent.resume()
        assert (resumed.status, resumed.run) == ("completed", parked.run)
    runs = [span for span in sending.spans if span.name == "invoke_agent"]
    assert sorted(span.attributes["sideband.run.reason"] for span in runs) == ["completed", "parked"]
    assert len({span.trace for span in runs}) == 1
    assert not any(span.failed or "error.type" in span.attributes for span in runs)
    assert len({span.id for span in sending.spans}) == len(sending.spans)


ASKED = ("llm.models", "look")


@tool("look", resume="replay")
async def look(params: Step, ctx) -> str:
    """Look at the models."""
    await ctx.dispatch("llm.models", {})
    return "seen"


async def test_tool_call_that_waits_and_runs_again_has_two_spans(open_agent, sending):
    asking = guard(lambda event: Ask("Really?") if (event.op, event.origin.tool) == ASKED else None)
    turns = [Turn(tool_calls=[("look", {})]), "done"]
    async with open_agent(turns, asking, Plugin("tool", "look", look)) as agent:
        parked = await agent.invoke("go on")
        assert parked.status == "parked"
        await agent.host.approvals.answer(parked.requests[0], Approval("allow"))
        assert (await agent.resume()).status == "completed"
    waited, ran = [span for span in sending.spans if span.name == "execute_tool look"]
    assert (waited.attributes["error.type"], ran.failed) == ("approval.needed", False)
    assert "llm.models" in children(sending, ran)
    assert len({span.id for span in sending.spans}) == len(sending.spans)
