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
    settings = {"agent": {"model": f"scripted:model-{CANARY}"}}
    async with open_agent(["done"], settings=settings) as agent:
        agent.host.redactor.protect(CANARY, "canary")
        await agent.invoke("go on")
    assert CANARY.encode() not in b"".join(sending.raw)
    assert any(span.name.startswith("chat model-") for span in sending.spans)


async def test_what_a_model_writes_instead_of_a_tool_is_not_sent(open_agent, sending):
    async with open_agent([Turn(tool_calls=[(CANARY, {}), ("work", {}, f"{CANARY} as an id")]), "done"]) as agent:
        await agent.invoke("go on")
    assert CANARY.encode() not in b"".join(sending.raw)
    assert sending.named("execute_tool unknown").attributes["error.type"] == "tool.rejected"
    assert sending.named("execute_tool work").attributes["gen_ai.tool.name"] == "work"


REJECTED = {
    "an op that does not exist": (CANARY, {}, "op.unknown"),
    "an op that does not exist of the family http": ("http.other", {"url": f"http://{CANARY}.example/"}, "op.unknown"),
    "a URL beside an unknown parameter": ("http.get", {"url": f"http://{CANARY}.example/", "x": 1}, "op.params"),
    "a model that is not allowed": ("llm.generate", {"model": f"x:{CANARY}", "messages": ["go on"]}, "op.params"),
    "numbers that are texts": (
        "llm.generate",
        {"model": "x:y", "temperature": [CANARY], "max_tokens": {CANARY: 1}, "thinking": CANARY},
        "op.params",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
async def test_what_a_skill_writes_into_a_rejected_effect_is_not_sent(open_host, sending, case):
    op_name, params, code = REJECTED[case]
    async with open_host() as host:
        with pytest.raises(OpError):
            await host.op(op_name, params, grants=["http", "llm"])
    assert CANARY.encode() not in b"".join(sending.raw)
    (span,) = sending.spans
    assert span.attributes["error.type"] == code
