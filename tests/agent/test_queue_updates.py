"""Changes of queues are reported in order, also while the agent is idle. The modes say how many messages are taken."""

import anyio
import anyio.lowlevel
import pytest
from sideband import Plugin
from sideband_agent import Agent, attachment_of
from sideband_scripted import Turn

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

CALL = Turn(tool_calls=[("echo", {"text": "x"})])


@pytest.fixture
def ears(kit):
    """A plugin that collects the changes of queues."""
    changes = []

    async def queue_update(event):
        changes.append((event.queue, event.change, event.texts, event.waiting, event.count))

    plugin = Plugin("hook", "ears", kit.hooks(queue_update=queue_update))
    return plugin, changes


def user_texts(agent):
    return [message.text for message in agent.session.messages() if message.role == "user"]


async def test_changes_of_an_idle_agent_are_reported_at_once(stage, ears):
    plugin, changes = ears
    async with stage([], plugin) as agent:
        agent.steer("one")
        agent.steer("two")
        agent.follow_up("three")
        await anyio.wait_all_tasks_blocked()
        assert changes == [
            ("steering", "added", ("one",), ("one",), 1),
            ("steering", "added", ("two",), ("one", "two"), 2),
            ("follow_up", "added", ("three",), ("three",), 1),
        ]


async def test_change_is_reported_while_the_run_waits_for_the_model(stage, kit, ears):
    plugin, changes = ears
    reported = []

    async def tool_execution_start(event, ctx):
        ctx.steer("now")
        await anyio.wait_all_tasks_blocked()
        reported.extend(changes)

    other = Plugin("hook", "other", kit.hooks(tool_execution_start=tool_execution_start))
    async with stage([CALL, "ok"], kit.echo, plugin, other) as agent:
        await agent.invoke("hi")
    assert reported == [("steering", "added", ("now",), ("now",), 1)]


async def test_taken_messages_are_reported_before_they_appear(stage, kit):
    events = []
    async with stage(["one", "two"], Plugin("hook", "ears", kit.listening(events))) as agent:
        agent.steer("first")
        agent.follow_up("second")
        await agent.invoke("hi")
    seen = [
        (event.change, *event.texts) if event.hook == "queue_update" else event.message["content"][0]["text"]
        for event in events
        if event.hook == "queue_update" or (event.hook == "message_end" and event.message["role"] == "user")
    ]
    added = [("added", "first"), ("added", "second")]
    assert seen[:2] == added or seen[0] == "hi"
    assert [one for one in seen if one not in added] == [
        "hi",
        ("taken", "first"),
        "first",
        ("taken", "second"),
        "second",
    ]


async def test_cleared_queues_are_returned_and_reported(stage, ears):
    plugin, changes = ears
    async with stage([], plugin) as agent:
        agent.steer("one", source="helper")
        agent.follow_up("two")
        assert [(one.text, one.source) for one in agent.clear_queues()] == [("two", "user"), ("one", "helper")]
        assert agent.clear_queues() == ()
        assert not agent.has_pending_messages
    assert changes[2:] == [("follow_up", "cleared", ("two",), (), 0), ("steering", "cleared", ("one",), (), 0)]


async def test_changes_of_an_agent_that_is_not_open_are_reported_when_it_opens(stage, ears):
    plugin, changes = ears
    async with stage([], plugin) as agent:
        later = Agent(agent.host)
        later.steer("one")
        await anyio.wait_all_tasks_blocked()
        assert changes == []
        async with later:
            assert [change[1] for change in changes] == ["added"]


async def test_last_changes_are_reported_before_the_agent_closes(stage, kit):
    events = []
    async with stage([], Plugin("hook", "ears", kit.listening(events))) as agent:
        agent.steer("one")
    assert [event.hook for event in events] == ["session_start", "queue_update", "session_shutdown"]


async def test_closing_agent_waits_for_a_change_that_is_being_reported(stage, kit):
    seen = []
    gate = anyio.Event()

    async def queue_update(event):
        await gate.wait()
        seen.append(event.texts)

    def session_shutdown(event):
        seen.append("closed")

    plugin = Plugin("hook", "slow", kit.hooks(queue_update=queue_update, session_shutdown=session_shutdown))
    async with stage([], plugin) as agent, anyio.create_task_group() as tasks:
        closing = await Agent(agent.host).__aenter__()
        closing.steer("one")
        await anyio.wait_all_tasks_blocked()
        closing.steer("two")
        tasks.start_soon(closing.__aexit__)
        await anyio.wait_all_tasks_blocked()
        gate.set()
        await anyio.wait_all_tasks_blocked()
        assert seen == [("one",), ("two",), "closed"]


async def test_changes_after_the_agent_has_closed_are_not_reported(stage, ears):
    plugin, changes = ears
    async with stage([], plugin) as agent:
        async with Agent(agent.host) as closed:
            closed.steer("one")
        closed.steer("two")
        await anyio.wait_all_tasks_blocked()
        assert [texts for _, _, texts, _, _ in changes] == [("one",)]


async def test_changes_that_nothing_observes_are_not_kept(stage):
    async with stage([]) as agent:
        agent.steer("one")
        assert agent._queue_changes.events is None


async def test_slow_observers_see_changes_in_order(stage, kit):
    seen = []
    gate = anyio.Event()

    async def queue_update(event):
        if event.texts == ("0",):
            await gate.wait()
        seen.append(event.texts[0])

    async with stage([], Plugin("hook", "slow", kit.hooks(queue_update=queue_update))) as agent:
        agent.steer("0")
        await anyio.wait_all_tasks_blocked()
        for number in range(1, 4):
            agent.steer(str(number))
            await anyio.wait_all_tasks_blocked()
        assert seen == []
        gate.set()
        await anyio.wait_all_tasks_blocked()
        assert seen == ["0", "1", "2", "3"]


async def test_observer_that_queues_for_each_change_does_not_stop_the_run(stage, kit):
    def queue_update(event, ctx):
        if event.change == "added" and event.count < 50:
            ctx.follow_up("again")

    async with stage(["ok"] * 100, Plugin("hook", "echoing", kit.hooks(queue_update=queue_update))) as agent:
        agent.steer("start")
        with anyio.fail_after(30):
            assert (await agent.invoke("hi")).status == "completed"


async def test_observer_that_queues_for_each_change_leaves_time_to_others(stage, kit):
    heard = []

    def queue_update(event, ctx):
        heard.append(event.count)
        if event.count < 5_000:
            ctx.follow_up("again")

    async with stage([], Plugin("hook", "echoing", kit.hooks(queue_update=queue_update))) as agent:
        agent.follow_up("start")
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        assert 0 < len(heard) < 50


async def test_failing_observer_keeps_no_change_from_others(stage, kit, ears):
    plugin, changes = ears

    def queue_update(event):
        raise RuntimeError("no")

    async with stage([], Plugin("hook", "a-broken", kit.hooks(queue_update=queue_update)), plugin) as agent:
        agent.steer("one")
    assert len(changes) == 1


async def test_reported_texts_are_redacted_and_bounded(stage, ears):
    plugin, changes = ears
    async with stage([], plugin) as agent:
        agent.host.redactor.protect("hunter-two-hunter", "password")
        for number in range(30):
            agent.steer(f"{number} hunter-two-hunter")
    assert "hunter" not in str(changes)
    *_, (_, _, (text,), waiting, count) = changes
    assert text.startswith("29 ")
    assert (len(waiting), count) == (20, 30)


async def test_observer_that_clears_the_queues_does_not_fail_the_run(stage, kit):
    def queue_update(event):
        if event.change == "taken":
            agent.clear_queues()

    async with stage(["ok"], Plugin("hook", "clearer", kit.hooks(queue_update=queue_update))) as agent:
        agent.steer("one")
        agent.steer("two")
        assert (await agent.invoke("hi")).status == "completed"
        assert user_texts(agent) == ["hi", "one"]


async def test_message_that_is_queued_while_the_one_before_is_stored_stays(stage):
    async with stage([]) as agent:
        agent.steer("one")
        stored = agent.queues.steering[0]
        agent.clear_queues()
        agent.steer("two")
        agent.queues.remove_steering(stored)
        assert [one.text for one in agent.queues.steering] == ["two"]


async def test_waiting_observer_does_not_keep_a_taken_input_from_being_stored(stage, kit):
    async def queue_update(event):
        if event.change == "taken":
            await anyio.sleep_forever()

    async with stage(["ok"], Plugin("hook", "waiter", kit.hooks(queue_update=queue_update))) as agent:
        agent.follow_up("first")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.invoke_queued)
            with anyio.move_on_after(1):
                while not user_texts(agent):
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert user_texts(agent) == ["first"]


async def test_one_message_at_a_time_is_taken_before_a_step(stage, kit):
    async with stage([CALL, CALL, "ok"], kit.echo, steering_mode="one") as agent:
        agent.steer("one")
        agent.steer("two")
        await agent.invoke("hi")
        sent = [[one.text for one in request.messages if one.role == "user"] for request in agent.scripted.requests]
    assert sent == [["hi", "one"], ["hi", "one", "two"], ["hi", "one", "two"]]


async def test_all_inputs_of_one_source_begin_one_run(stage, kit):
    settings = {"agent": {"model": "scripted:test", "follow_ups": "all"}}
    heard = []

    def input_(event):
        heard.append(event.text)

    input_.__name__ = "input"
    async with stage(["a", "b", "c"], Plugin("hook", "ears", kit.hooks(input=input_)), settings=settings) as agent:
        for text, source in (("one", "user"), ("two", "user"), ("three", "helper")):
            agent.follow_up(text, source=source)
        assert (await agent.invoke("hi")).text == "c"
        assert user_texts(agent) == heard == ["hi", "one\n\ntwo", "three"]


async def test_inputs_of_one_run_keep_their_attachments(stage):
    image = attachment_of("dot.png", b"\x89PNG\r\n\x1a\n")
    async with stage(["a", "b"], follow_up_mode="all") as agent:
        agent.follow_up("one", attachments=[image])
        agent.follow_up("two", attachments=[image])
        await agent.invoke_queued()
        assert [part.type for part in agent.session.messages()[0].content] == ["text", "image", "image"]


async def test_mode_of_an_agent_overrides_the_configured_one(stage):
    settings = {"agent": {"model": "scripted:test", "follow_ups": "all"}}
    async with stage(["a", "b", "c"], settings=settings, follow_up_mode="one") as agent:
        agent.follow_up("one")
        agent.follow_up("two")
        await agent.invoke("hi")
        assert user_texts(agent) == ["hi", "one", "two"]


async def test_queued_inputs_begin_runs_on_request(stage):
    async with stage(["a", "b"]) as agent:
        assert await agent.invoke_queued() is None
        agent.follow_up("one")
        agent.steer("late")
        result = await agent.invoke_queued()
        assert (result.text, user_texts(agent)) == ("a", ["one", "late"])


async def test_input_stays_queued_without_a_model(stage):
    from sideband_agent import ModelMissing

    async with stage([], settings={"agent": {"model": None}}) as agent:
        agent.follow_up("one")
        with pytest.raises(ModelMissing):
            await agent.invoke_queued()
        assert [one.text for one in agent.queues.following] == ["one"]


@pytest.mark.parametrize("name", ["steering_mode", "follow_up_mode"])
async def test_unknown_mode_is_refused(stage, name):
    async with stage([]) as agent:
        with pytest.raises(ValueError, match=f"`{name}`: expected `one` or `all`, got 'two'"):
            Agent(agent.host, **{name: "two"})
