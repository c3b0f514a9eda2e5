"""Readers of an agent's events: each gets all of them in order, or learns how many it missed. The run never waits."""

import gc
import weakref
from contextlib import suppress

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st
from sideband import Plugin
from sideband.hooks import HOOK_SPECS, HookRegistry, Kind, TurnStart
from sideband_agent import Agent, AgentClosed, Lagged
from sideband_agent._event_stream import EventStream
from sideband_scripted import Scripted, Turn

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

CALL = Turn(tool_calls=[("echo", {"text": "x"})])
OBSERVED = [name for name, spec in HOOK_SPECS.items() if spec.kind is Kind.OBSERVE]


def is_observed(agent):
    return any(agent.hooks.has(hook) for hook in OBSERVED)


async def until(reader, hook):
    """Read up to the first event of a hook, and return all that was read."""
    found = []
    async for event in reader:
        found.append(event)
        if event.hook == hook:
            break
    return found


async def emit(hooks, numbers):
    for number in numbers:
        await hooks.observe(TurnStart("run", number))


def numbers(events):
    """Return the numbers of emitted events, and of missed ones as texts."""
    return [f"{event.missed} missed" if isinstance(event, Lagged) else event.index for event in events]


async def test_reader_gets_the_very_events_that_plugins_get(stage, kit):
    by_plugin = []
    plugins = [kit.echo, Plugin("hook", "ears", kit.listening(by_plugin))]
    settings = {"agent": {"model": "scripted:test", "context_window": 100_000}}  # not requested from the provider
    async with stage([CALL, "ok"], *plugins, settings=settings) as agent:
        by_plugin.clear()
        reader = agent.events()
        await agent.invoke("hi")
    by_reader = [event async for event in reader]
    assert {"agent_start", "message_update", "effect", "session_shutdown"} <= {event.hook for event in by_reader}
    assert all(one is other for one, other in zip(by_reader, by_plugin, strict=True)), "an event was copied"


async def test_slow_reader_learns_how_many_events_it_missed(stage, kit):
    async with stage([CALL, "ok"], kit.echo) as agent, agent.events(buffer=4) as slow, agent.events() as fast:
        assert (await agent.invoke("hi")).status == "completed"
        emitted = await until(fast, "settled")
        found = [await anext(slow) for _ in range(5)]
    assert found == [Lagged(len(emitted) - 4), *emitted[-4:]]


async def test_plugin_that_hangs_keeps_no_event_from_readers(stage, kit):
    async def turn_start(event):
        if event.index == 1:
            await anyio.sleep_forever()

    plugin = Plugin("hook", "hanging", kit.hooks(turn_start=turn_start))
    async with stage([], plugin) as agent, agent.events() as reader:
        with anyio.CancelScope() as scope:
            await emit(agent.hooks, [0])
            scope.deadline = anyio.current_time() + 0.01
            await emit(agent.hooks, [1])
        await emit(agent.hooks, [2])
        assert scope.cancelled_caught
        assert numbers([await anext(reader) for _ in range(3)]) == [0, 1, 2]


async def test_number_of_missed_events_appears_where_they_are_missing(stage):
    async with stage([]) as agent, agent.events(buffer=2) as reader:
        await emit(agent.hooks, range(2))
        found = [await anext(reader)]
        await emit(agent.hooks, range(2, 5))
        found += [await anext(reader), await anext(reader)]
        await emit(agent.hooks, range(5, 7))
        found += [await anext(reader) for _ in range(3)]
    assert numbers(found) == [0, "2 missed", 3, "1 missed", 5, 6]


async def test_late_reader_begins_with_the_events_that_were_kept(stage):
    async with stage(["ok"], event_history=3) as agent:
        await agent.invoke("hi")
        readers = [agent.events(), agent.events(history=2), agent.events(history=0), agent.events(history=9, buffer=1)]
    found = [[event.hook async for event in reader] for reader in readers]
    end = "session_shutdown"
    assert found == [
        ["agent_end", "save_point", "settled", end],
        ["save_point", "settled", end],
        [end],
        ["lagged", end],
    ]


async def test_no_event_is_kept_unless_it_is_asked_for(stage):
    async with stage(["ok"]) as agent:
        async with agent.events():
            await agent.invoke("hi")
        reader = agent.events()
    assert [event.hook async for event in reader] == ["session_shutdown"]


async def test_events_are_observed_only_while_there_is_a_reader(stage):
    async with stage([]) as agent:
        observed = [is_observed(agent)]
        async with agent.events():
            async with agent.events():
                observed.append(is_observed(agent))
            observed.append(is_observed(agent))
        observed.append(is_observed(agent))
    assert observed == [False, True, True, False]


async def test_closed_agent_observes_nothing_for_a_reader_that_is_still_there(stage):
    async with stage([]) as agent:
        reader = agent.events()
    assert not is_observed(agent)
    reader.close()


async def test_events_are_kept_also_after_a_reader_has_left(stage):
    async with stage([], event_history=5) as agent:
        async with agent.events():
            pass
        await emit(agent.hooks, [7])
        async with agent.events(history=1) as reader:
            assert numbers([await anext(reader)]) == [7]


@pytest.mark.parametrize("leaving", ["break", "error", "cancellation"])
async def test_reader_that_leaves_is_removed(stage, leaving):
    async with stage(["ok"]) as agent:
        with anyio.CancelScope() as scope:
            with suppress(ZeroDivisionError):
                async with agent.events() as reader:
                    await agent.invoke("hi")
                    async for _ in reader:
                        if leaving == "break":
                            break
                        assert leaving == "cancellation" or 1 // 0
                        scope.cancel()
        assert not is_observed(agent)
        assert [event async for event in reader] == []


async def test_reader_that_is_dropped_is_removed_with_the_next_event(stage):
    async with stage([]) as agent:
        reader = weakref.ref(agent.events())
        gc.collect()
        assert reader() is None
        await emit(agent.hooks, [0])
        assert not is_observed(agent)


async def test_loop_over_events_ends_when_the_agent_closes(stage):
    found = []
    async with anyio.create_task_group() as tasks, stage(["ok"]) as agent:

        async def follow():
            found.extend([event.hook async for event in agent.events()])

        tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        await agent.invoke("hi")
    assert (found[0], found[-1]) == ("agent_start", "session_shutdown")


async def test_waiting_reader_gets_an_event_at_once(stage):
    found = []
    async with stage([]) as agent, agent.events() as reader, anyio.create_task_group() as tasks:

        async def wait():
            found.append(await anext(reader))

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await emit(agent.hooks, [7])
        await anyio.wait_all_tasks_blocked()
        assert numbers(found) == [7]


async def test_closing_a_reader_ends_a_task_that_waits_for_it(stage):
    async with stage([]) as agent, anyio.create_task_group() as tasks:
        reader = agent.events()
        found = []

        async def follow():
            found.append([event async for event in reader])

        tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        reader.close()
    assert found == [[]]


async def test_cancelled_wait_loses_no_event(stage):
    async with stage([]) as agent, agent.events() as reader:
        found = []

        async def wait():
            with scope:
                found.append(await anext(reader))

        for number in range(2):
            scope = anyio.CancelScope()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                await emit(agent.hooks, [number])
                scope.cancel()
        found += [await anext(reader) for _ in range(2 - len(found))]
    assert numbers(found) == [0, 1]


async def test_reader_with_unread_events_can_be_cancelled(stage):
    async with stage([]) as agent, agent.events() as reader:
        await emit(agent.hooks, [0, 1])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await anext(reader)
        assert scope.cancelled_caught
        assert numbers([await anext(reader), await anext(reader)]) == [0, 1]


async def test_tasks_that_share_a_reader_share_its_events(stage):
    found = []
    async with anyio.create_task_group() as tasks, stage([]) as agent:
        reader = agent.events()

        async def follow():
            found.extend([event async for event in reader])

        for _ in range(3):
            tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        await emit(agent.hooks, range(5))
    assert sorted(numbers(found[:5])) == [0, 1, 2, 3, 4]
    assert [event.hook for event in found[5:]] == ["session_shutdown"]


async def test_reader_follows_an_agent_into_other_sessions(stage):
    async with stage([]) as agent:
        first = agent.session.id
        reader = agent.events()
        second = await agent.new_session()
    events = [(event.hook, event.session) async for event in reader]
    assert events == [("session_shutdown", first), ("session_start", second), ("session_shutdown", second)]


async def test_reader_of_an_agent_that_is_not_open_yet_sees_its_session_start(stage):
    async with stage([]) as agent:
        later = Agent(agent.host)
        reader = later.events()
        async with later:
            assert (await anext(reader)).session == later.session.id


async def test_reader_of_an_agent_that_cannot_be_opened_ends(stage):
    async with stage([]) as agent:
        broken = Agent(agent.host, session="missing")
        reader = broken.events()
        with pytest.raises(LookupError):
            await broken.__aenter__()
        assert [event async for event in reader] == []


async def test_closed_agent_refuses_readers_until_it_is_opened_again(stage):
    async with stage(["ok"]) as agent:
        other = Agent(agent.host)
        async with other:
            pass
        with pytest.raises(AgentClosed):
            other.events()
        async with other, other.events() as reader:
            await other.invoke("hi")
            assert (await anext(reader)).hook == "agent_start"


@pytest.mark.parametrize("arguments", [{"buffer": 0}, {"buffer": None}, {"history": -1}, {"history": "all"}])
async def test_error_names_the_invalid_argument(stage, arguments):
    (name,) = arguments
    async with stage([]) as agent:
        with pytest.raises(ValueError, match=f"`{name}`: expected .*integer of at least"):
            agent.events(**arguments)
        with pytest.raises(ValueError, match="`event_history`: expected an integer of at least 0, got -1"):
            Agent(agent.host, event_history=-1)


async def test_memory_of_slow_readers_is_bounded(stage):
    async with stage([]) as agent:
        readers = [agent.events(buffer=10) for _ in range(50)]
        made = []
        for number in range(1_000):
            event = TurnStart(f"run {number}", number)
            made.append(weakref.ref(event))
            await agent.hooks.observe(event)
            del event
        assert sum(one() is not None for one in made) == 10
        assert [(await anext(reader)).missed for reader in readers] == [990] * 50


READERS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.none() | st.integers(0, 4)), max_size=5)


@given(
    readers=READERS, pauses=st.lists(st.integers(0, 3), max_size=40), kept=st.integers(0, 4), early=st.integers(0, 6)
)
async def test_received_and_missed_events_are_all_that_were_emitted(readers, pauses, kept, early):
    """Let readers with buffers of any size read at any speed. Each counts where it is in the sequence."""
    hooks = HookRegistry()
    stream = EventStream(hooks, kept)
    ends = []

    async def follow(reader, pause, begin):
        position = begin
        async for event in reader:
            if isinstance(event, Lagged):
                assert event.missed > 0
                position += event.missed
            else:
                assert event.index == position
                position += 1
            for _ in range(pause):
                await checkpoint()
        ends.append(position)

    await emit(hooks, range(early))
    async with anyio.create_task_group() as tasks:
        for size, pause, history in readers:
            begin = early - min(early, kept, kept if history is None else history)
            tasks.start_soon(follow, stream.read(size, history), pause, begin)
        for number, pause in enumerate(pauses, early):
            await hooks.observe(TurnStart("run", number))
            for _ in range(pause):
                await checkpoint()
        stream.end()
    assert ends == [early + len(pauses)] * len(readers)


async def test_server_follows_a_hundred_agents(stage, kit):
    """Follow each of 100 agents in a task of one group, as a server does that sends their events to its clients."""
    followed = {}
    scripted = Scripted([CALL, "done"], by_history=True)
    async with stage((), kit.echo, scripted=scripted) as agent, anyio.create_task_group() as server:

        async def follow(reader):
            events = [event async for event in reader]
            followed[events[0].session] = [event.hook for event in events]

        async def work():
            own = Agent(agent.host)
            server.start_soon(follow, own.events())
            async with own:
                assert (await own.invoke("go on")).text == "done"

        async with anyio.create_task_group() as clients:
            for _ in range(100):
                clients.start_soon(work)
    assert len(followed) == 100
    for hooks in followed.values():
        assert (hooks[0], hooks[-2:]) == ("session_start", ["settled", "session_shutdown"])
        assert [hooks.count(name) for name in ("turn_start", "tool_execution_end", "effect")] == [2, 1, 3]
