"""Messages that wait: none is lost, whatever ends the run."""

import pytest
from sideband import Plugin
from sideband_agent import Budget
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


async def test_steering_that_is_not_stored_yet_stays_queued_when_the_run_is_ended(stage, kit):
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


async def test_what_was_queued_runs_after_a_run_that_was_resumed(stage, kit):
    heard = []
    turns = [Turn(tool_calls=[("echo", {"text": "x"})]), "fine", "and more"]
    plugins = [kit.echo, Plugin("hook", "ears", kit.listening(heard))]
    async with stage(turns, *plugins, budget=Budget(calls=0)) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        agent.allowance.limit = Budget()
        heard.clear()
        agent.follow_up("more")
        assert (await agent.resume()).text == "and more"
        assert not agent.has_pending_messages
    assert [event.hook for event in heard].count("settled") == 1


async def test_who_said_it_is_stored_with_each_message(stage, kit):
    def turn_start(event, ctx):
        if event.index == 0 and not ctx.has_pending_messages and ctx.agent.scripted.requests == []:
            ctx.steer("look here")
            ctx.follow_up("one more thing")

    async with stage(["one", "two", "three"], Plugin("hook", "helper", kit.hooks(turn_start=turn_start))) as agent:
        await agent.invoke("hi")
        await agent.invoke("do it", source="agent")
        said = {message.text: message.source for message in agent.session.messages() if message.role == "user"}
    assert said == {"hi": "user", "look here": "helper", "one more thing": "plugin", "do it": "agent"}
