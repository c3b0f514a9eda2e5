import pytest
from sideband_agent import Agent

pytestmark = pytest.mark.anyio


async def test_tasks_are_added_changed_and_removed(call):
    await call("todo", add=["read\nit", "fix it", "test it"])
    result = await call("todo", set=[{"number": 1, "state": "done"}, {"number": 2, "state": "active"}], remove=[3])
    assert result.text == "1 [x] read it\n2 [>] fix it\n[1 of 2 done]"


async def test_text_of_a_task_can_be_changed_alone(call):
    await call("todo", add=["read it"], set=[])
    await call("todo", set=[{"number": 1, "state": "active"}])
    result = await call("todo", set=[{"number": 1, "text": "read\nall of it"}])
    assert result.text == "1 [>] read all of it\n[0 of 1 done]"


async def test_numbers_are_not_used_again(call):
    await call("todo", add=["read it"])
    await call("todo", remove=[1])
    assert (await call("todo", add=["fix it"])).text == "2 [ ] fix it\n[0 of 1 done]"


async def test_unknown_number_changes_nothing(call):
    await call("todo", add=["read it"])
    result = await call("todo", add=["fix it"], set=[{"number": 7, "state": "done"}])
    assert (result.is_error, result.metadata["code"]) == (True, "tools.task")
    assert "no task 7; nothing was changed. numbers in the list: 1" in result.text
    assert (await call("todo")).text == "1 [ ] read it\n[0 of 1 done]"


async def test_list_follows_the_session_when_it_is_rewound_or_forked(call):
    await call("todo", add=["read it"])
    before = call.agent.session.leaf
    await call("todo", add=["fix it"])
    await call.agent.fork(before)
    assert (await call("todo")).text == "1 [ ] read it\n[0 of 1 done]"
    await call("todo", add=["test it"])
    await call.agent.rewind(before)
    assert (await call("todo")).text == "1 [ ] read it\n[0 of 1 done]"


async def test_list_is_there_when_the_session_is_resumed(scripted_host, work, calling):
    host, script = scripted_host()
    async with host as opened:
        async with Agent(opened, folder=work) as agent:
            await calling(agent, script)("todo", add=["read it"])
            session = agent.session.id
        async with Agent(opened, folder=work, session=session) as agent:
            assert (await calling(agent, script)("todo")).text == "1 [ ] read it\n[0 of 1 done]"
        async with Agent(opened, folder=work) as agent:
            assert (await calling(agent, script)("todo")).text == "[the list is empty]"
