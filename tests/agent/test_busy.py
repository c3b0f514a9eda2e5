"""One run at a time: further operations are rejected immediately."""

import anyio
import pytest
from anyio.lowlevel import checkpoint
from sideband import Plugin
from sideband_agent import AgentBusy
from sideband_scripted import Hang, Scripted, Turn

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]


async def test_concurrent_input_is_rejected_or_runs_afterwards(stage, kit):
    def play(request):
        return Turn(tool_calls=[("echo", {"text": "x"})]) if request.messages[-1].role == "user" else "done"

    outcomes = []

    async def invoke(text):
        try:
            outcomes.append((await agent.invoke(text)).status)
        except AgentBusy:
            outcomes.append("busy")

    async def later(checkpoints):
        for _ in range(checkpoints):
            await checkpoint()
        was_idle = agent.is_idle
        before = len(outcomes)
        await invoke("second")
        # rejected immediately: no other outcome in between
        assert was_idle or outcomes[before] == "busy", checkpoints

    async with stage([], kit.echo, scripted=Scripted([play], repeat=True)) as agent:
        for checkpoints in range(0, 60, 3):
            outcomes.clear()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(invoke, "first")
                tasks.start_soon(later, checkpoints)
            asked = [message.text for message in agent.session.messages() if message.role == "user"]
            kit.assert_valid(agent.session.messages())
            assert outcomes.count("completed") == len(asked), checkpoints
            assert sorted(outcomes) in (["busy", "completed"], ["completed", "completed"]), checkpoints
            await agent.new_session()


async def test_input_during_any_hook_is_rejected(stage, kit):
    rejected = []

    async def again():
        with pytest.raises(AgentBusy):
            await agent.invoke("second")
        rejected.append(True)

    def make(name):
        async def hook(event):
            await again()

        hook.__name__ = name
        return hook

    names = [
        "agent_start",
        "input",
        "before_agent_start",
        "context",
        "turn_start",
        "ephemeral",
        "before_provider_request",
        "message_start",
        "message_update",
        "message_end",
        "after_provider_response",
        "tool_call",
        "tool_execution_start",
        "tool_result",
        "tool_execution_end",
        "turn_end",
        "agent_end",
        "save_point",
        "sections",
    ]
    plugin = Plugin("guard", "eager", kit.guard(**{name: make(name) for name in names}))
    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "one"]
    async with stage(turns, kit.echo, plugin) as agent:
        result = await agent.invoke("first")
        asked = [message.text for message in agent.session.messages() if message.role == "user"]
    assert (result.status, asked) == ("completed", ["first"])
    assert len(rejected) > len(names)


async def test_structural_changes_during_a_run_are_rejected(stage, kit):
    errors = []

    async def turn_start(event, ctx):
        for operation in (
            ctx.new_session(),
            ctx.fork(),
            ctx.switch_session("other"),
            ctx.reload(),
            agent.compact(),
            agent.select_model("scripted:other"),
            agent.resume(),
        ):
            with pytest.raises(AgentBusy) as error:
                await operation
            errors.append(error.value)

    async with stage(["ok"], Plugin("hook", "eager", kit.hooks(turn_start=turn_start))) as agent:
        before = agent.session.id
        await agent.invoke("hi")
        assert agent.session.id == before
    assert {error.code for error in errors} == {"agent.busy"}
    assert len(errors) == 7
    assert "turn" in errors[0].message


async def test_agent_is_idle_after_a_failed_run(stage, kit):
    async def failing(request):
        raise RuntimeError("a defect in a script")

    async with stage([failing, "fine"]) as agent:
        first = await agent.invoke("one")
        second = await agent.invoke("two")
    assert (first.status, second.status) == ("failed", "completed")


async def test_wait_for_idle_returns_when_the_run_ends(stage):
    order = []

    async def wait():
        await agent.wait_for_idle()
        order.append("idle")

    async with stage(["ok"]) as agent, anyio.create_task_group() as tasks:
        tasks.start_soon(agent.invoke, "hi")
        await checkpoint()
        tasks.start_soon(wait)
    assert order == ["idle"]


async def test_cancelled_run_leaves_the_agent_idle_and_can_be_resumed(stage):
    hang = Hang()
    async with stage([hang, "done"]) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke, "hi")
            await hang.reached.wait()
            tasks.cancel_scope.cancel()
        assert agent.is_idle
        result = await agent.resume()
        assert [message.text for message in agent.session.messages()] == ["hi", "done"]
    assert result.status == "completed"
