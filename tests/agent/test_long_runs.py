"""Runs longer than the model's window complete, and every request is valid."""

import pytest
from sideband import Plugin
from sideband.tools import tool
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio

CALLS = 80
REQUEST = "Count all the words in every file of the archive, and remember the number 4711."


@pytest.mark.parametrize("at_once", [1, 4])
async def test_run_of_many_calls_with_a_small_window_is_compacted_and_completes(stage, kit, at_once):
    ran = []

    @tool("read")
    async def read(params: kit.Text, ctx) -> str:
        """Read a file."""
        ran.append(params.text)
        return f"words of {params.text} " * 20

    def play(request):
        if len(ran) >= CALLS:
            return "counted"
        return Turn(tool_calls=[("read", {"text": f"file-{len(ran)}-{n}"}) for n in range(at_once)])

    window = 2_500
    scripted = Scripted([play], repeat=True, context_window=window)
    settings = {
        "agent": {"model": "scripted:test", "turns": 500, "compaction": {"reserve": 600, "keep": 500}},
    }
    compactions = []

    def watch(event):
        if event.hook == "session_compact":
            compactions.append(event)

    plugin = Plugin("tool", "read", read)
    async with stage([], plugin, scripted=scripted, settings=settings, on_event=watch) as agent:
        result = await agent.invoke(REQUEST)
    assert (result.status, result.text, len(ran)) == ("completed", "counted", CALLS)
    assert len(compactions) > 2
    for request in scripted.requests:
        kit.assert_valid(request.messages)
        assert any(message.role == "user" and REQUEST in message.text for message in request.messages)
        assert sum(len(message.text) for message in request.messages) // 4 < window


async def test_endless_run_is_parked_at_the_turn_limit(stage, kit):
    settings = {"agent": {"model": "scripted:test", "turns": 5}}
    scripted = Scripted([Turn(tool_calls=[("echo", {"text": "x"})])], repeat=True)
    async with stage([], kit.echo, scripted=scripted, settings=settings) as agent:
        result = await agent.invoke("hi")
        kit.assert_valid(agent.session.messages())
    assert (result.status, result.error["code"]) == ("parked", "agent.turns")
    assert len(scripted.requests) == 5
