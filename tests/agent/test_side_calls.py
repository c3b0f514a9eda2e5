"""Model calls of tools, outside the conversation: each effect is charged once, also if its answer is a recorded one."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.messages import Usage
from sideband.ops import Level, OpFamily, op
from sideband.tools import tool
from sideband_scripted import Turn

ASK = """
from sideband.skill import llm

@tool
async def buy() -> str:
    \"\"\"Ask the model.\"\"\"
    answer = await llm.ask("scripted:test", "think")
    await till.point(mark="between")
    return answer
"""


@pytest.fixture
def ask(shop):
    """Return a function that runs a host whose agent calls a tool that asks the model."""
    shop.write(ASK, **{"sideband.capabilities": "till llm"})

    def run(tool):
        answer = shop.run(tool=tool, skill_grants={"buyer": ["till", "llm"]})
        assert answer is None or answer["text"] == "thought"
        return answer and answer["usage"][:2]

    return run


@pytest.mark.parametrize("point", ["between", "llm.generate"])
@pytest.mark.parametrize(("tool", "name"), [("asker", "asker"), ("buyer__buy", "buy")])
def test_model_call_that_is_answered_from_the_record_is_charged_once(shop, ask, tool, name, point):
    usage, money = expected = ask(tool)
    assert (usage["cost"], money) == (0.5, 0.5)
    shop.home.rename(shop.home.with_name("first"))
    shop.home.mkdir(mode=0o700)
    # The second point is between the record of the model call and the charge.
    shop.arm(point if point == "between" else f"{point} of {name}")
    assert ask(tool) is None
    for _ in ("resumed", "opened again"):
        assert ask(tool) == expected
    assert shop.lines("asked model").count("think 0") == 1


class Nothing(BaseModel):
    pass


@op("brain.think", level=Level.SAFE)
async def think(params: Nothing, ctx) -> str:
    """Ask the model as a child effect."""
    question = {"model": "scripted:test", "messages": [{"role": "user", "content": "think"}]}
    return (await ctx.dispatch("llm.generate", question))["content"][0]["text"]


@tool("wonder")
async def wonder(params: Nothing, ctx) -> str:
    """Ask the model by an op."""
    return await ctx.dispatch("brain.think", {}, capabilities=["llm"])


@pytest.mark.anyio
async def test_model_call_of_an_op_is_charged(stage):
    free, paid = Usage(input=1, cost=0), Usage(input=100, cost=0.5)
    turns = [Turn(tool_calls=[("wonder", {})], usage=free), Turn("thought", usage=paid), Turn("done", usage=free)]
    brain = Plugin("op", "brain", SimpleNamespace(sideband_ops=lambda: OpFamily("brain", (think,))))
    async with stage(turns, brain, Plugin("tool", "wonder", wonder)) as agent:
        await agent.invoke("hi")
        assert agent.session.messages()[2].text == "thought"
        assert (agent.usage.cost, agent.allowance.used.money) == (0.5, 0.5)
