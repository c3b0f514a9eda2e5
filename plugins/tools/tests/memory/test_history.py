import pytest
from sideband_agent.sessions import CompactionEntry
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio


async def test_message_that_was_compacted_is_found_and_shown(call):
    call.script.turns += ["The port is 8443."]
    await call.agent.invoke("Which port does the server use?")
    session = call.agent.session
    last = await session.append_message(session.messages()[-1])
    await session.append(CompactionEntry(summary="They talked about a server.", first_kept=last, tokens_before=100))
    result = await call("history", action="search", query="which PORT")
    first, second, *_ = result.text.split("\n")
    assert first == "1 user: Which port does the server use?"
    assert second.endswith("assistant: The port is 8443.")
    shown = await call("history", action="show", first=1, count=2)
    assert shown.text.split("\n\n") == [
        "[message 1, user]\nWhich port does the server use?",
        "[message 2, assistant]\nThe port is 8443.",
    ]


async def test_arguments_of_tools_are_found(call):
    await call("history", action="search", query="unusual")
    assert (
        '[called history {"action": "search", "query": "unusual"}]'
        in (await call("history", action="search", query="unusual")).text
    )


async def test_long_message_is_shortened_among_others_and_shown_alone(call):
    call.script.turns += ["x" * 15_000]
    await call.agent.invoke("go")
    assert "characters omitted: show this message alone]" in (await call("history", action="show")).text
    assert "omitted" not in (await call("history", action="show", first=2, count=1)).text


async def test_number_beyond_the_end_is_reported(call):
    assert (await call("history", action="show", first=90)).text == "[the session has 1 messages]"


async def test_search_without_query_is_an_error(call):
    assert "`search` needs `query`" in (await call("history", action="search")).text


async def test_compaction_is_requested_with_instructions(call):
    for number in range(30):
        call.script.turns += [f"answer {number} " + "x" * 4_000]
        await call.agent.invoke("go")
    call.script.turns += [Turn(tool_calls=[("history", {"action": "compact", "instructions": "keep the port"})])]
    call.script.turns += ["A summary.", "done"]
    ran = await call.agent.invoke("go")
    assert ran.status == "completed"
    assert any("keep the port" in str(request) for request in call.script.requests)
    assert any(isinstance(one, CompactionEntry) for one in call.agent.session.path())
