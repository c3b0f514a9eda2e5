"""Whatever a model and its programs do, in whatever order, an agent calls only the tools that its settings leave it."""

from collections import Counter
from types import SimpleNamespace

import anyio
import pytest
import sideband_llm.plugin
import sideband_skills.plugin
import sideband_store_sqlite.plugin
import sideband_tool_selection.plugin
import sideband_tools.plugin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sideband import Host, Plugin
from sideband.hooks import hookimpl
from sideband.tools import Tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

EXPAND = "tool_expand_tools"
NAMES = [f"thing_{letter}" for letter in "abcdefghijkl"]
CATEGORIES = {"thing_a": "pair", "thing_c": "pair", "thing_l": "pair"}
EXPLICIT = {"thing_b", "thing_h"}
SKILL = (
    "---\nname: guide\ndescription: How to use all things.\nallowed-tools: thing_a thing_b\n---\n\nCall all things.\n"
)
TASK = "Use all things."

some_names = st.lists(st.sampled_from(NAMES), max_size=4, unique=True)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("expand"), some_names),
        st.tuples(st.just("call"), st.sampled_from(NAMES)),
        st.tuples(st.just("child"), st.none() | some_names),
        st.tuples(st.sampled_from(["skill", "reload", "rewind", "new"]), st.none()),
        st.tuples(st.just("select"), some_names),
    ),
    min_size=1,
    max_size=8,
)


class World:
    """Tools that record which of them ran, a model that takes one step, and a second plugin that selects."""

    def __init__(self):
        self.ran, self.sent, self.step, self.selection, self.session = set(), set(), None, None, None
        self.beyond = set()

    def tool(self, name):
        async def run(arguments, ctx):
            self.ran.add(name)
            if ctx.session.id != self.session and self.step[1] is not None and name not in self.step[1]:
                self.beyond.add(name)
            return "ran"

        schema = {"type": "object", "properties": {}}
        category, explicit = CATEGORIES.get(name, ""), name in EXPLICIT
        return Tool(name, f"Use {name}.", schema, dict, run, category=category, explicit=explicit)

    @hookimpl
    def tool_selection(self, event):
        return self.selection

    def play(self, request):
        self.sent |= {one.name for one in request.tools}
        asked = max(index for index, one in enumerate(request.messages) if one.role == "user")
        turns = Counter(one.role for one in request.messages[asked:])["assistant"]
        if TASK in request.messages[asked].text:  # a child tries all
            calls = [[(EXPAND, {"tool_names": NAMES})], [(name, {}) for name in NAMES]]
        else:
            calls = [[self.call(*self.step)]] if self.step else []
        return Turn(tool_calls=calls[turns]) if turns < len(calls) else "done"

    @staticmethod
    def call(action, value):
        arguments = {
            "expand": {"tool_names": value},
            "child": {"tools": value and [EXPAND, *value]},
            "skill": {"name": "guide"},
        }
        names = {"expand": EXPAND, "child": "delegate", "skill": "skill", "call": value}
        return names[action], arguments.get(action, {})


async def delegate(arguments, ctx):
    return (await ctx.spawn_child(TASK, tools=arguments["tools"])).text


def plugins_of(world):
    schema = {"type": "object", "properties": {}}
    things = [*map(world.tool, NAMES), Tool("delegate", "Delegate.", schema, dict, delegate)]
    return [
        Plugin("hook", "tool-selection", sideband_tool_selection.plugin),
        Plugin("tool", "tool-selection", sideband_tool_selection.plugin),
        Plugin("hook", "another", world),
        Plugin("op", "llm", sideband_llm.plugin),
        Plugin("provider", "scripted", Scripted([world.play], repeat=True)),
        Plugin("loader", "skills", sideband_skills.plugin),
        Plugin("store", "sqlite", sideband_store_sqlite.plugin),
        Plugin("tool", "skill", sideband_tools.plugin.skill),
        Plugin("tool", "things", SimpleNamespace(sideband_tools=lambda: things)),
    ]


async def take(agent, world, action, value):
    if action == "select":
        world.selection = [*value, EXPAND, "delegate", "skill"]
    elif action == "reload":
        await agent.reload()
    elif action == "rewind":
        await agent.rewind(None)
    elif action == "new":
        await agent.new_session()
    else:
        if action == "child" and value is not None:  # with names that the parent has not, there is no child
            value = [name for name in value if name in agent.tools.names]
        world.step, world.session = (action, value), agent.session.id
        await agent.invoke(f"Take a step with {value}.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("skills")
    (found / "guide").mkdir()
    (found / "guide" / "SKILL.md").write_text(SKILL)
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=st.tuples(st.none() | some_names, some_names, some_names), sequence=steps)
def test_no_sequence_of_steps_widens_the_view(folder, tmp_path_factory, rules, sequence):
    world = World()
    wanted, disabled, explicit = rules
    named = set(wanted or ())
    allowed = {name for name in NAMES if wanted is None or name in named} - set(disabled)
    allowed = {name for name in allowed if name in named or name not in {*explicit, *EXPLICIT}}

    async def play():
        of_tools = {"suggest_over": 3, "always": ["delegate", "skill"], "disabled": disabled, "explicit": explicit}
        table = {"agent": {"model": "scripted:test"}, "tools": of_tools, "plugins": {"tool-selection": {"least": 1}}}
        tools = None if wanted is None else [*wanted, EXPAND, "skill", "delegate"]
        home = tmp_path_factory.mktemp("home")
        host = Host(home=home, settings=table, plugins=plugins_of(world), autoload=False, skill_dirs=[folder])
        async with host, Agent(host, tools=tools) as agent:
            for step in sequence:
                await take(agent, world, *step)
                assert {one.name for one in agent.tools.tools} & set(NAMES) == allowed

    anyio.run(play)
    assert world.sent & set(NAMES) <= allowed
    assert world.ran <= allowed
    assert not world.beyond, "a child ran tools that its parent did not give it"
