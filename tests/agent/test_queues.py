"""Queued messages: none is lost, however the run ends."""

import pytest
from sideband import Plugin
from sideband_agent import Budget
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_steering_not_yet_stored_stays_queued_after_an_abort(stage, kit):
    def message_end(event, ctx):
        if event.message["role"] == "user" and "one" in str(event.message["content"]):
            ctx.abort()

    async with stage(["fine"], Plugin("hook", "ender", kit.hooks(message_end=message_end))) as agent:
        for text in ("one", "two", "three"):
            agent.steer(text)
        assert (await agent.invoke("hi")).status == "aborted"
        stored = [message.text for message in agent.session.messages()]
        waiting = [queued.text for queued in agent.queues.steering]
        assert [*stored, *waiting] == ["hi", "one", "two", "three"]
        await agent.invoke("again")
        assert [message.text for message in agent.session.messages() if message.role == "user"].count("three") == 1
        assert not agent.has_pending_messages


async def test_queued_input_runs_after_a_resumed_run(stage, kit):
    events = []
    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "fine", "and more"]
    plugins = [kit.echo, Plugin("hook", "ears", kit.listening(events))]
    async with stage(turns, *plugins, budget=Budget(calls=0)) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        agent.allowance.limit = Budget()
        events.clear()
        agent.follow_up("more")
        assert (await agent.resume()).text == "and more"
        assert not agent.has_pending_messages
    assert [event.hook for event in events].count("settled") == 1


async def test_source_is_stored_with_each_message(stage, kit):
    def turn_start(event, ctx):
        if event.index == 0 and not ctx.has_pending_messages and ctx.agent.scripted.requests == []:
            ctx.steer("look here")
            ctx.follow_up("one more thing")

    async with stage(["one", "two", "three"], Plugin("hook", "helper", kit.hooks(turn_start=turn_start))) as agent:
        await agent.invoke("hi")
        await agent.invoke("do it", source="agent")
        sources = {message.text: message.source for message in agent.session.messages() if message.role == "user"}
    assert sources == {"hi": "user", "look here": "helper", "one more thing": "plugin", "do it": "agent"}
