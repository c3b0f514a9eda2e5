"""Results of plugins' tools are redacted like results of skills before the model sees them."""

import math
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.hooks import Patch
from sideband.messages import TextPart
from sideband.tools import ToolOutput, tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


class Account(BaseModel):
    user: str
    password: str


class Opaque:
    def __repr__(self):
        return "opaque"


RESULTS = {
    "an object": {"user": "ada", "password": "hunter2"},
    "a list of objects": [{"token": "hunter2"}],
    "a deep object": {"a": {"b": [{"aws_secret_access_key": ["hunter2"]}]}},
    "an object that is not JSON": {"password": "hunter2", "score": math.nan, "set": {1}},
    "an object with a date and bytes": {"password": "hunter2", "at": datetime(2026, 1, 1, tzinfo=UTC), "raw": b"x"},
    "an object with an unknown type": {"password": "hunter2", "other": Opaque()},
    "a model": Account(user="ada", password="hunter2"),
    "a list of models": [Account(user="ada", password="hunter2")],
    "an output": ToolOutput({"password": "hunter2"}),
    "metadata": ToolOutput("done", metadata={"password": "hunter2", "score": math.nan}),
    "a failure": ToolOutput({"password": "hunter2"}, is_error=True),
}


def returning(value):
    class Nothing(BaseModel):
        pass

    @tool("reply")
    async def reply(params: Nothing, ctx):
        """Reply."""
        return value

    return Plugin("tool", "reply", reply)


async def everything(agent):
    """Return all that the model, the session and the ledger received."""
    stored = [path.read_bytes() for path in agent.host.home.rglob("*") if path.is_file()]
    return repr([agent.scripted.requests, agent.session.messages(), stored])


@pytest.mark.parametrize("result", RESULTS)
async def test_value_under_a_sensitive_key_does_not_reach_the_model(stage, result):
    async with stage([Turn(tool_calls=[("reply", {})]), "done"], returning(RESULTS[result])) as agent:
        await agent.invoke("go")
        seen = await everything(agent)
    assert "hunter2" not in seen
    assert "reply" in seen


async def test_value_in_a_result_replaced_by_a_plugin_does_not_reach_the_model(stage, kit):
    def tool_result(event):
        return Patch({"password": "hunter2", "kept": "yes"})

    turns = [Turn(tool_calls=[("reply", {})]), "done"]
    async with stage(turns, returning("x"), Plugin("hook", "patching", kit.hooks(tool_result=tool_result))) as agent:
        await agent.invoke("go")
        seen = await everything(agent)
    assert "hunter2" not in seen
    assert "kept" in seen


async def test_parts_and_harmless_data_are_unchanged(stage):
    result = [TextPart(text="a password is a word"), {"type": "text", "text": '{"max_tokens": 5}'}]
    async with stage([Turn(tool_calls=[("reply", {})]), "done"], returning(result)) as agent:
        await agent.invoke("go")
        text = agent.session.messages()[-2].content[0].text
    assert text == 'a password is a word\n{"max_tokens": 5}'
