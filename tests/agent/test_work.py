"""The work of an agent, in Python calls: it must not grow unnoticed, nor with what an agent does not use."""

import asyncio
import gc
import sys
import tracemalloc
from collections import Counter
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from sideband import Plugin
from sideband.hooks import hookimpl
from sideband.loading import LoadedSkills, SkillSpec, ToolSpec
from sideband.tools import Tool, tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

pytestmark = pytest.mark.anyio

TEN_CALLS = [*(Turn(tool_calls=[("echo", {"text": str(number)})]) for number in range(10)), "done"]


@contextmanager
def counted():
    """Count the Python calls of the block in this thread by file, with the garbage collector off.

    Resumptions depend on waits, and are not counted.
    """
    found = Counter()
    running = set()

    def profile(frame, event, _argument):
        if event != "call" or frame in running:
            return
        if frame.f_code.co_flags & 0x2A0:  # a generator or coroutine, which is called again when it resumes
            running.add(frame)
        found[frame.f_code.co_filename] += 1

    gc.disable()  # finalizers and the callbacks of test tools would be counted too
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(None)
        gc.enable()


async def work_of_a_run(host):
    """Return the calls of a run in a new session, after another one that filled the caches."""
    for _ in range(2):
        async with Agent(host) as agent:
            with counted() as found:
                result = await agent.invoke("go on")
            assert result.text == "done", result.error
    return found


def tools(number):
    async def run(arguments, ctx):
        return ""

    return Plugin("tool", "idle", SimpleNamespace(sideband_tools=lambda: [idle(one, run) for one in range(number)]))


def idle(number, run):
    return Tool(f"idle.number{number}", "Do nothing.", {"type": "object", "properties": {}}, dict, run)


def skills(number):
    async def load(sources):
        return LoadedSkills(tuple(skill(one) for one in range(number)))

    one = SimpleNamespace(name="many", load=load)
    return Plugin("loader", "many", SimpleNamespace(sideband_loaders=lambda: [one]))


def skill(number):
    spec = ToolSpec(f"skill{number}", "go", "tools.py", "Go.", {"type": "object"}, validate=dict)
    return SkillSpec(name=f"skill{number}", key=f"skill{number}", description="", source=Path("nowhere"), tools=(spec,))


class Uncounted(Scripted):
    """A provider that does not count the tokens of a request, as each of its tools is one call."""

    async def stream(self, request, ctx):
        async for event in super().stream(request.model_copy(update={"tools": ()}), ctx):
            yield event


def scripted():
    return Scripted(TEN_CALLS, by_history=True)


async def test_run_makes_and_copies_no_event_that_no_plugin_observes(stage, kit):
    async with stage((), kit.echo, scripted=scripted()) as agent:
        found = await work_of_a_run(agent.host)
    assert [file for file in found if "sideband.hooks._observed." in file or "sideband.hooks._decided." in file] == []
    assert [file for file in found if file.endswith("hooks/_frozen.py")] == []


@pytest.mark.parametrize(("observed", "tasks"), [((), 0), (("tool_execution_update",), 1), (("tool_progress",), 1)])
async def test_tool_call_takes_a_second_task_only_if_a_plugin_observes_its_progress(stage, kit, observed, tasks):
    @tool("count")
    async def count(params: kit.Text, ctx) -> int:
        """Count the tasks that pass on progress."""
        return sum("CallProgress" in one.get_name() for one in asyncio.all_tasks())

    plugins = [Plugin("hook", "idle", kit.hooks(**dict.fromkeys(observed, lambda event: None)))] if observed else []
    async with stage([Turn(tool_calls=[("count", {})]), "ok"], Plugin("tool", "count", count), *plugins) as agent:
        await agent.invoke("hi")
        (answer,) = [one for one in agent.session.messages() if one.role == "tool"]
    assert int(answer.text) == tasks


async def test_run_with_ten_tool_calls_takes_few_python_calls(stage, kit):
    async with stage((), kit.echo, scripted=scripted()) as agent:
        found = await work_of_a_run(agent.host)
    assert found.total() < 18_900, (
        "profile benchmarks.agent_runs and remove the added work, or state here why it is needed"
    )


def observers(number):
    async def turn_start(event, ctx): ...

    one = SimpleNamespace(turn_start=hookimpl(turn_start))
    return [Plugin("hook", f"idle-{each}", one) for each in range(number)]


async def work_of_opening(host, **options):
    """Return the fewest calls of opening an agent: the first fills the caches, and other tasks may run beside one."""
    totals = []
    for _ in range(4):
        with counted() as found:
            agent = await Agent(host, **options).__aenter__()
        await agent.__aexit__()
        totals.append(found.total())
    return min(totals)


@pytest.mark.parametrize(
    "plugins",
    [
        pytest.param(observers, id="plugins"),
        pytest.param(lambda number: [tools(10 * number)], id="tools"),
        pytest.param(lambda number: [skills(10 * number)], id="skills"),
    ],
)
async def test_work_of_opening_an_agent_does_not_grow_with_what_is_installed(stage, kit, plugins, tmp_path):
    found = []
    for number in (10, 200):
        async with stage(["ok"], *plugins(number), home=tmp_path / str(number)) as agent:
            await agent.invoke("hi")
            found.append(await work_of_opening(agent.host))
    assert found[1] < 1.1 * found[0], "keep what belongs to plugins, tools and skills in what the host's agents share"


async def test_opening_an_agent_takes_few_python_calls(stage, kit):
    async with stage(["ok"], Plugin("guard", "own", kit.guard(tool_call=lambda event: None))) as agent:
        found = await work_of_opening(agent.host, on_event=lambda event: None)
    # Of these, about 50 are for the approval mode of the session and the table [tools].
    assert found < 610, "keep what belongs to the host out of the agent, or state here why it is needed"


async def test_idle_agent_takes_little_memory(stage, kit):
    async with stage(["ok"], kit.echo, *observers(200)) as agent, AsyncExitStack() as agents:
        await agents.enter_async_context(Agent(agent.host))
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(20):
                await agents.enter_async_context(Agent(agent.host))
            gc.collect()
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # Of these, about 1,400 are for the approval mode, and for what selects tools and limits the skills that are shown.
    assert used / 20 < 15_600, "keep what belongs to the host out of the agent: a host may have thousands"


async def test_entry_of_a_finished_run_takes_little_memory(stage, kit):
    async with stage((), kit.echo, scripted=Uncounted(TEN_CALLS, by_history=True)) as agent, AsyncExitStack() as agents:
        await agent.invoke("go on")
        opened = [await agents.enter_async_context(Agent(agent.host)) for _ in range(10)]
        gc.collect()
        tracemalloc.start()
        try:
            for one in opened:
                await one.invoke("go on")
            gc.collect()
            taken = tracemalloc.take_snapshot()
        finally:
            tracemalloc.stop()
        entries = sum(len(one.session.tree) for one in opened)
    # Not what the ledger keeps until its index, which a thread writes, has it.
    places = ("*/sideband_agent/*", "*/pydantic/*", "*/copy.py")
    kept = taken.filter_traces([tracemalloc.Filter(True, place) for place in places])
    used = sum(trace.size for trace in kept.traces)
    assert used / entries < 3_050, "keep one copy of a message, and share what messages have in common"


async def test_turn_takes_the_same_work_for_any_number_of_tools_that_are_sent(stage, kit, tmp_path):
    found = []
    for number in (20, 2_000):
        home = tmp_path / str(number)
        async with stage(
            (), kit.echo, tools(number), scripted=Uncounted(TEN_CALLS, by_history=True), home=home
        ) as agent:
            found.append((await work_of_a_run(agent.host)).total())
    assert found[1] - found[0] < 2_000, "keep what belongs to all tools of an agent with the tuple of their schemas"
