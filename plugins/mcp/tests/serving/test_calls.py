"""Tool calls of the official SDK's client, in both eras of the protocol."""

import json

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation
from sideband.hooks import Deny

pytestmark = pytest.mark.anyio


async def test_tools_are_listed_with_their_parameters(serving, mode):
    async with serving() as one, one.client(mode) as client:
        listed = {each.name: each for each in (await client.list_tools()).tools}
        assert listed["things__echo"].description == "Return the text."
        assert set(listed["things__echo"].input_schema["properties"]) == {"text", "times"}
        assert listed["things__echo"].annotations.read_only_hint
        assert not listed["things__change"].annotations.read_only_hint


async def test_call_returns_the_text_and_the_effect(serving, mode):
    async with serving() as one, one.client(mode) as client:
        result = await client.call_tool("things__echo", {"text": "hi", "times": "2"})
        assert (result.content[0].text, result.is_error) == ("hihi", False)
        (record,) = await one.records()
        assert result.meta["sideband/effect"] == record.effect


async def test_object_is_structured(serving, mode):
    async with serving() as one, one.client(mode) as client:
        result = await client.call_tool("things__data", {})
        assert result.structured_content == json.loads(result.content[0].text) == {"city": "Bern", "days": [1, 2]}


async def test_image_is_an_image(serving, mode):
    async with serving() as one, one.client(mode) as client:
        (part,) = (await client.call_tool("things__picture", {})).content
        assert (part.type, part.mime_type) == ("image", "image/png")


async def test_failure_of_a_tool_is_an_error_result(serving, mode):
    async with serving() as one, one.client(mode) as client:
        result = await client.call_tool("things__fail", {})
        assert result.is_error
        assert "no such thing" in result.content[0].text
        assert result.meta["sideband/effect"]


async def test_shortened_result_is_not_structured(serving, mode):
    async with serving() as one, one.client(mode) as client:
        result = await client.call_tool("things__long", {})
        assert result.structured_content is None
        assert result.meta["sideband/output"]


async def test_invalid_arguments_are_an_error_result(serving, mode):
    async with serving() as one, one.client(mode) as client:
        result = await client.call_tool("things__echo", {"times": "many"})
        assert result.is_error
        assert "times" in result.content[0].text


async def test_unknown_tool_is_an_error_of_the_protocol_and_recorded(serving, mode):
    async with serving() as one, one.client(mode) as client:
        with pytest.raises(MCPError, match="unknown tool"):
            await client.call_tool("other__tool", {})
        (record,) = await one.records()
        assert record.status == "failed"


async def test_guard_denies_a_call(serving, mode, guard):
    guard.decide = lambda event: Deny("not today")
    async with serving() as one, one.client(mode) as client:
        result = await client.call_tool("things__echo", {})
        assert result.is_error
        assert "not today" in result.content[0].text
        (record,) = await one.records()
        assert (record.status, record.effect) == ("denied", result.meta["sideband/effect"])


async def test_halt_of_a_guard_ends_one_run_and_not_the_connection(serving, mode, guard):
    decisions = [Deny("enough", halt=True), None]
    guard.decide = lambda event: decisions.pop(0)
    async with serving() as one, one.client(mode) as client:
        assert (await client.call_tool("things__echo", {})).is_error
        assert not (await client.call_tool("things__echo", {})).is_error
        second, first = await one.records()
        assert first.origin.run != second.origin.run
        assert first.origin.session == second.origin.session


async def test_abort_of_a_guard_ends_one_run_and_not_the_connection(serving, mode, guard):
    async with serving() as one, one.client(mode) as client:
        await client.call_tool("things__echo", {})
        (session,) = one.sessions._open.values()
        session.agent.abort("enough")
        assert not (await client.call_tool("things__echo", {})).is_error


async def test_progress_is_sent_before_the_result_and_grows(serving, mode):
    seen = []

    async def note(progress, total, message):
        seen.append((progress, total, message))

    async with serving() as one, one.client(mode) as client:
        result = await client.call_tool("things__work", {}, progress_callback=note)
        assert result.content[0].text == "worked"
    assert seen[-1] == (3, 3, "step 3")
    assert seen == sorted(seen)


async def test_calls_run_at_the_same_time(serving, mode):
    async with serving() as one, one.client(mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "things__wait", {})
        await one.door.began.wait()
        assert not (await client.call_tool("things__echo", {})).is_error
        one.door.open.set()


async def test_too_many_calls_are_refused(serving, mode):
    async with serving(calls=1) as one, one.client(mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "things__wait", {})
        await one.door.began.wait()
        with pytest.raises(MCPError, match="more than 1 calls"):
            await client.call_tool("things__echo", {})
        one.door.open.set()


async def test_cancelled_call_is_cancelled_and_recorded(serving, mode):
    async with serving() as one, one.client(mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "things__wait", {})
            await one.door.began.wait()
            tasks.cancel_scope.cancel()
        await one.door.left.wait()
        assert not (await client.call_tool("things__echo", {})).is_error
        assert [each.status for each in await one.records()] == ["done", "cancelled"]


async def test_client_that_leaves_cancels_its_calls(serving, mode):
    async with serving() as one:
        with anyio.CancelScope() as scope:
            async with one.client(mode) as client, anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "things__wait", {})
                await one.door.began.wait()
                scope.cancel()
        await one.door.left.wait()


async def test_end_of_the_server_cancels_and_records_calls(serving, mode):
    async with serving() as one, one.client(mode) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "things__wait", {})
        await one.door.began.wait()
        await one.sessions.close()
        (record,) = await one.records()
        assert record.status == "cancelled"


async def test_tool_that_must_be_named_is_not_offered(serving, mode):
    async with serving() as one, one.client(mode) as client:
        assert "things__secret" not in {each.name for each in (await client.list_tools()).tools}
        with pytest.raises(MCPError):
            await client.call_tool("things__secret", {})


async def test_named_tool_is_offered_alone(serving, mode):
    async with serving({"tools": ["things.secret"], "skills": None}) as one, one.client(mode) as client:
        assert [each.name for each in (await client.list_tools()).tools] == ["things__secret"]
        assert (await client.call_tool("things__secret", {})).content[0].text == "secret"


async def test_disabled_tool_is_not_offered(serving, mode):
    settings = {"tools": {"disabled": ["things.echo"]}}
    async with serving(settings=settings) as one, one.client(mode) as client:
        names = {each.name for each in (await client.list_tools()).tools}
        assert "things__echo" not in names
        assert "things__data" in names


async def test_tools_of_plugins_are_not_offered_unless_they_are_named(serving, mode):
    async with serving({"tools": None, "skills": None}) as one, one.client(mode) as client:
        assert (await client.list_tools()).tools == []
        with pytest.raises(MCPError):
            await client.call_tool("things__echo", {})


async def test_spent_budget_is_an_error_result(serving, mode):
    settings = {"agent": {"budget": {"calls": 1}}}
    async with serving(settings=settings) as one, one.client(mode) as client:
        assert not (await client.call_tool("things__echo", {})).is_error
        result = await client.call_tool("things__echo", {})
        assert "budget" in result.content[0].text
        assert result.is_error


async def test_call_after_a_pause_begins_a_new_run(serving, mode):
    async with serving(run_seconds=0) as one, one.client(mode) as client:
        await client.call_tool("things__echo", {})
        await client.call_tool("things__echo", {})
        second, first = await one.records()
        assert first.origin.run != second.origin.run


async def test_calls_shortly_after_each_other_are_one_run(serving, mode):
    async with serving() as one, one.client(mode) as client:
        await client.call_tool("things__echo", {})
        await client.call_tool("things__echo", {})
        second, first = await one.records()
        assert first.origin.run == second.origin.run


async def test_number_of_sessions_is_limited(serving, mode):
    async with serving(sessions=1) as one, one.client(mode) as client, one.client(mode, asks=False) as other:
        await client.call_tool("things__echo", {})
        with pytest.raises(MCPError, match="more than 1 clients"):
            await other.call_tool("things__echo", {})


async def test_session_has_the_name_of_the_client(serving, mode):
    info = Implementation(name="editor", version="1")
    async with serving() as one, one.client(mode, client_info=info) as client:
        await client.call_tool("things__echo", {})
        (session,) = one.sessions._open.values()
        assert session.agent.session.name == "MCP client editor"
