"""Nothing that a model, a tool, a server or a user wrote is sent."""

import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.ops import Level, OpContext, OpError, OpFamily, op
from sideband.tools import tool
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

CANARY = "canary-7f3a9c51"


class Note(BaseModel):
    text: str = ""


@op("vault.keep", level=Level.SAFE, record=["text"])
async def keep(params: Note, ctx: OpContext) -> str:
    await ctx.note({"noted": params.text})
    raise ValueError(f"cannot keep {params.text}")


class Vault:
    @staticmethod
    def sideband_ops():
        return OpFamily("vault", (keep,))


@tool("confide")
async def confide(params: Note, ctx) -> str:
    """Confide something."""
    with pytest.raises(OpError):
        await ctx.dispatch("vault.keep", {"text": params.text})
    return f"kept {params.text}"


async def test_no_text_of_a_conversation_is_sent(open_agent, sending):
    call = Turn(text=f"I confide {CANARY}", thinking=f"about {CANARY}", tool_calls=[("confide", {"text": CANARY})])
    plugins = Plugin("op", "vault", Vault), Plugin("tool", "confide", confide)
    async with open_agent([call, f"done with {CANARY}"], *plugins) as agent:
        result = await agent.invoke(f"confide {CANARY}")
        assert CANARY in result.text
        await agent.set_goal(f"keep {CANARY}")
    assert sending.named("vault.keep").attributes["error.type"] == "op.failed"
    assert CANARY.encode() not in b"".join(sending.raw)


async def test_known_secret_in_a_name_is_redacted(open_agent, sending):
    async with open_agent([Turn(tool_calls=[(f"tool-{CANARY}", {})]), "done"]) as agent:
        agent.host.redactor.protect(CANARY, "canary")
        await agent.invoke("go on")
    assert CANARY.encode() not in b"".join(sending.raw)
    assert any(span.name.startswith("execute_tool tool-") for span in sending.spans)


async def test_name_that_a_model_wrote_is_one_short_line(open_agent, sending):
    name = "x\x1b[31m\nforged: 1\u202e" + "y" * 5_000
    async with open_agent([Turn(tool_calls=[(name, {})]), "done"]) as agent:
        await agent.invoke("go on")
    (span,) = [span for span in sending.spans if span.name.startswith("execute_tool")]
    assert span.name.isprintable()
    assert len(span.name) <= 200
    assert span.attributes["gen_ai.tool.name"].isprintable()
