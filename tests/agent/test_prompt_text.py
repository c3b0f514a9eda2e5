"""The sections of a prompt know the first input of the session, also after it was resumed."""

import pytest
from sideband import Plugin
from sideband.hooks import Section
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


def noting(kit, texts):
    def sections(event):
        texts.append(event.text)
        return [Section("task", event.text)]

    return Plugin("hook", "noting", kit.hooks(sections=sections))


async def test_prompt_is_built_with_the_first_input_of_the_session(stage, kit):
    texts = []
    async with stage(["ok", "ok", "ok"], noting(kit, texts)) as agent:
        await agent.invoke("first")
        await agent.invoke("second")
        session = agent.session.id
        await agent.new_session()
        async with Agent(agent.host, session=session) as other:
            await other.invoke("third")
        assert [one.system for one in agent.scripted.requests] == ["first"] * 3
    assert texts == ["first", "first"]


async def test_known_secrets_of_the_first_input_are_redacted(stage, kit):
    texts = []
    async with stage(["ok"], noting(kit, texts)) as agent:
        agent.host.broker.redactor.protect("hunter2-canary", "test")
        await agent.invoke("my password is hunter2-canary")
    assert "canary" not in texts[0]
