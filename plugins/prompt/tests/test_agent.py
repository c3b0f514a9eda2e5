"""The tools and the prompt in a real agent."""

import pytest
import sideband_llm.plugin
import sideband_prompt.plugin
import sideband_store_sqlite.plugin
from sideband import Host, Plugin
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio


def host(home, scripted):
    plugins = [
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("provider", "scripted", scripted),
        Plugin("hook", "prompt", sideband_prompt.plugin),
        Plugin("tool", "prompt", sideband_prompt.plugin),
    ]
    return Host(home=home, plugins=plugins, autoload=False, settings={"plugins": {"prompt": {"profile": "work"}}})


async def test_note_appears_in_the_prompt_of_the_next_session(home):
    note = Turn(tool_calls=[("prompt__memory", {"action": "add", "text": "the ship is called Beagle"})])
    scripted = Scripted([note, "Noted.", "Again.", "Beagle."])
    async with host(home, scripted) as one, Agent(one, model="scripted:test") as agent:
        assert (await agent.invoke("Remember the name of the ship: Beagle.")).status == "completed"
        assert (await agent.invoke("And?")).status == "completed"
        await agent.new_session()
        assert (await agent.invoke("What is its name?")).text == "Beagle."
    first, second, third, fourth = [request.system for request in scripted.requests]
    assert first == second == third
    assert "Beagle" not in first
    assert "- the ship is called Beagle\n" in fourth
    assert (home / "profiles/work/MEMORY.md").read_text() == "- the ship is called Beagle\n"


async def test_agent_reads_a_document_listed_in_the_prompt(home, write):
    write(home / "prompt/knowledge/ropes.md", "# Ropes\n\nA bowline holds.")
    scripted = Scripted(
        [Turn(tool_calls=[("prompt__knowledge", {"action": "read", "path": "ropes.md"})]), "A bowline."]
    )
    async with host(home, scripted) as one, Agent(one, model="scripted:test") as agent:
        assert (await agent.invoke("Which knot?")).text == "A bowline."
    assert "- ropes.md: Ropes" in scripted.requests[0].system
    assert "A bowline holds." in scripted.requests[1].messages[-1].text


async def test_rejected_note_is_reported_to_the_model(home, write):
    write(home / "profiles/work/MEMORY.md", "- Beagle\n")
    scripted = Scripted([Turn(tool_calls=[("prompt__memory", {"action": "add", "text": "beagle"})]), "So be it."])
    async with host(home, scripted) as one, Agent(one, model="scripted:test") as agent:
        await agent.invoke("Remember it.")
    answer = scripted.requests[1].messages[-1]
    assert answer.is_error
    assert "already contains" in answer.text


async def test_known_secret_is_redacted_in_the_memory(home):
    scripted = Scripted(
        [Turn(tool_calls=[("prompt__memory", {"action": "add", "text": "key: s3cr3t-canary"})]), "Done."]
    )
    async with host(home, scripted) as one, Agent(one, model="scripted:test") as agent:
        one.redactor.protect("s3cr3t-canary", "canary")
        await agent.invoke("Remember my key.")
    assert (home / "profiles/work/MEMORY.md").read_text() == "- key: [redacted:canary]\n"
