import pytest

pytestmark = pytest.mark.anyio


async def test_answer_of_the_child_is_the_result(call, ctx, ended):
    ctx.result = ended(text="42", input=1_000, output=200, cache_read=34, cost=0.5)
    result = await call("subagent", task="think", tools=["skill"], share=0.25)
    assert ctx.spawned == [("think", ["skill"], 0.25)]
    assert result.content == "42\n\n[the agent completed its task; 1,234 tokens, 0.5000 US dollars]"
    assert not result.is_error
    assert result.metadata["status"] == "completed"
    assert result.metadata["usage"]["cost"] == 0.5


async def test_child_has_the_tools_of_its_parent_by_default(call, ctx, ended):
    ctx.result = ended()
    await call("subagent", task="think")
    assert ctx.spawned == [("think", None, 0.5)]


async def test_empty_list_of_tools_gives_no_tools(call, ctx, ended):
    ctx.result = ended()
    await call("subagent", task="think", tools=[])
    assert ctx.spawned == [("think", [], 0.5)]


@pytest.mark.parametrize("status", ["aborted", "failed", "parked"])
async def test_incomplete_child_is_an_error_with_its_answer(call, ctx, ended, status):
    ctx.result = ended(status, "half of it")
    result = await call("subagent", task="think")
    assert result.is_error
    assert result.content.startswith("half of it\n\n[the agent ")
    assert "before it completed; 0 tokens]" in result.content


async def test_child_without_an_answer_is_reported(call, ctx, ended):
    ctx.result = ended(text=" ")
    assert (await call("subagent", task="think")).content.startswith("(no answer)")


@pytest.mark.parametrize("arguments", [{"task": ""}, {"task": "x", "share": 0}, {"task": "x", "share": 2}, {}])
async def test_invalid_arguments_are_rejected(call, ctx, arguments):
    with pytest.raises(ValueError, match=r"task|share"):
        await call("subagent", **arguments)
    assert ctx.spawned == []
