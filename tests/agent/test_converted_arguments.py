"""Texts in the arguments of a model are converted where only one meaning is possible; errors have a class."""

import json

import pytest
from pydantic import BaseModel
from sideband.tools import Tool, ToolOutput, tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


async def test_texts_with_one_meaning_are_converted_and_named_in_the_metadata(stage):
    class Params(BaseModel):
        flags: dict[str, bool]
        times: int

    @tool("repeat")
    async def repeat(params: Params, ctx) -> dict:
        """Return the arguments."""
        return params.model_dump()

    turns = [Turn(tool_calls=[("repeat", {"flags": '{"fast": true}', "times": "3"})]), "ok"]
    async with stage(turns, own_tools=[repeat]) as agent:
        await agent.invoke("hi")
        (result,) = [one for one in agent.session.messages() if one.role == "tool"]
    assert json.loads(result.text) == {"flags": {"fast": True}, "times": 3}
    assert result.metadata["coerced"] == ["flags", "times"]


async def test_text_with_several_meanings_stays_an_error(stage):
    class Params(BaseModel):
        names: list[str]

    @tool("repeat")
    async def repeat(params: Params, ctx) -> dict:
        """Return the arguments."""
        return params.model_dump()

    async with stage([Turn(tool_calls=[("repeat", {"names": "a, b"})]), "ok"], own_tools=[repeat]) as agent:
        await agent.invoke("hi")
        (result,) = [one for one in agent.session.messages() if one.role == "tool"]
    assert "Invalid arguments for repeat: `names`" in result.text
    assert (result.metadata["code"], result.metadata["error_class"]) == ("tool.rejected", "INVALID_ARGUMENT")
    assert "coerced" not in result.metadata


async def test_tool_cannot_set_the_class_of_its_error(stage):
    async def fail(arguments, ctx):
        return ToolOutput("no", is_error=True, metadata={"error_class": "NOT_FOUND", "coerced": ["x"], "own": 1})

    own = [Tool("fail", "", {"type": "object"}, dict, fail)]
    async with stage([Turn(tool_calls=[("fail", {})]), "ok"], own_tools=own) as agent:
        await agent.invoke("hi")
        (result,) = [one for one in agent.session.messages() if one.role == "tool"]
    assert {"error_class", "coerced"}.isdisjoint(result.metadata)
    assert result.metadata["own"] == 1
