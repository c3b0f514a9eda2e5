"""Sources of tools: each runs in a task of its host, and can neither delay, widen nor break anything."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from sideband import Plugin
from sideband.host import _tool_sources
from sideband.loading import LoadedSkills, SkillSpec, ToolSpec
from sideband.plugins import PluginInvalid
from sideband.tools import SCHEMA_LIMIT, is_tool_source

from .tool_desk import Source, listed, make, plugin, until

pytestmark = pytest.mark.anyio


def skill(name):
    spec = ToolSpec(name, "go", "tools.py", "Go.", {"type": "object"}, validate=dict)
    return SkillSpec(name=name, key=name, description="", source=Path(), tools=(spec,))


def skills(found):
    async def load(sources):
        return LoadedSkills(tuple(map(skill, found)))

    return Plugin("loader", "list", SimpleNamespace(sideband_loaders=lambda: [SimpleNamespace(name="l", load=load)]))


# What a source is for


async def test_tools_of_a_source_appear_change_and_disappear(hosting):
    source = Source(make("tickets.find"))
    async with hosting(plugin(source, make("desk"))) as host:
        view = await listed(host)
        assert [(one.name, one.source) for one in view.tools] == [
            ("desk", "plugin desk"),
            ("tickets.find", "source tickets"),
        ]
        assert host.tools.context(view.get("tickets.find")).plugin == "desk"
        version = host.tools.current.version
        source.announce(make("tickets.find", "Find."), make("tickets.open"))
        await until(lambda: host.tools.current.view.names == ("desk", "tickets.find", "tickets.open"))
        assert host.tools.current.version > version
        assert host.tools.current.view.get("tickets.find").description == "Find."
        assert [one.description for one in view.tools] == ["", ""], "a snapshot must not change"
        source.announce()
        await until(lambda: host.tools.current.view.names == ("desk",))
        assert host.tools.problems == ()
    assert source.seen["close"] == 1


async def test_source_is_opened_once_for_all_views_and_reloads(hosting):
    source = Source(make("tickets"))
    async with hosting(plugin(source)) as host:
        assert await listed(host) is await host.tools.view()
        host.tools.forget_skills()
        assert (await listed(host)).names == ("tickets",)
    assert source.seen == {"open desk": 1, "list": 1, "close": 1}


async def test_waiting_for_sources_opens_them(hosting):
    async with hosting(plugin(Source(make("tickets")))) as host:
        with anyio.fail_after(30):
            await host.tools.wait_for_sources()
        assert host.tools.current.view.names == ("tickets",)


async def test_source_is_not_opened_before_tools_are_needed(hosting):
    source = Source(make("tickets"))
    async with hosting(plugin(source)):
        pass
    assert not source.seen


async def test_tools_announced_while_they_are_listed_are_listed_again(hosting):
    class Busy(Source):
        async def list(self):
            found = await super().list()
            if self.seen["list"] == 1:
                self.announce(make("tickets.new"))
            return found

    async with hosting(plugin(Busy(make("tickets.old")))) as host:
        await host.tools.view()
        await until(lambda: host.tools.current.view.names == ("tickets.new",))


async def test_source_of_a_session_is_not_opened_by_the_host(hosting):
    source = Source(make("tickets"), scope="session")
    async with hosting(plugin(source, make("desk"))) as host:
        assert (await listed(host)).names == ("desk",)
        assert [(one.plugin, one.source) for one in host.tools.session_sources] == [("desk", source)]
    assert not source.seen


# Names


async def test_source_cannot_have_names_of_others(hosting):
    bad = [make("desk.own"), make("github.stars"), make("ticket"), make("tickets_x.y"), make("tickets.ok")]
    async with hosting(plugin(Source(*bad)), skills(["github"])) as host:
        assert (await listed(host)).names == ("github.go", "tickets.ok")
        assert [one.split(":")[1] for one in host.tools.problems] == [
            " omitted the tool 'desk.own'",
            " omitted the tool 'github.stars'",
            " omitted the tool 'ticket'",
            " omitted the tool 'tickets_x.y'",
        ]
        assert "it must be named `tickets` or `tickets.*`" in host.tools.problems[0]


@pytest.mark.parametrize(("name", "owner"), [("github", "skill github"), ("memory", "plugin memory")])
async def test_source_with_the_name_of_a_skill_or_another_plugin_is_not_opened(hosting, name, owner):
    source = Source(make(f"{name}.more"), name=name)
    async with hosting(plugin(source), plugin(make("memory"), name="memory"), skills(["github"])) as host:
        assert (await listed(host)).names == ("github.go", "memory")
        assert host.tools.problems == (f"the source `{name}` was not opened: {owner} has its name",)
    assert not source.seen


async def test_source_cannot_have_the_name_of_an_unusable_plugin(hosting):
    source = Source(make("memory.more"), name="memory")
    broken = Plugin("tool", "memory", SimpleNamespace(sideband_tools=lambda: None))
    async with hosting(plugin(source), broken) as host:
        assert (await listed(host)).names == ()
    assert not source.seen


async def test_second_source_with_a_name_is_not_opened_even_after_the_first_has_failed(hosting):
    end = anyio.Event()

    class Failing(Source):
        async def changed(self):
            await end.wait()

        @asynccontextmanager
        async def open(self, ctx):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self.fail)
                yield self

        async def fail(self):
            await end.wait()
            raise RuntimeError("gone")

    first, second = Failing(make("tickets.one")), Source(make("tickets.two"))
    found = []
    plugins = plugin(first, name="a"), plugin(second, name="b"), skills(found)
    async with hosting(*plugins) as host:
        assert (await listed(host)).names == ("tickets.one",)
        assert "the source `tickets` was not opened: source tickets has its name" in host.tools.problems
        end.set()
        await until(lambda: host.tools.current.view.names == ())
        host.tools.forget_skills()
        assert (await listed(host)).names == ()
        assert "source tickets: its tools are unavailable: it failed: RuntimeError: gone" in host.tools.problems
    assert not second.seen


async def test_skill_loaded_later_does_not_take_the_name_of_a_source(hosting):
    found = []
    source = Source(make("github.stars"), name="github")
    async with hosting(plugin(source), skills(found)) as host:
        assert (await listed(host)).names == ("github.stars",)
        found.append("github")
        host.tools.forget_skills()
        assert (await listed(host)).names == ("github.stars",)
        assert host.tools.problems == ("omitted the tool `github.go`: source github has its name",)


async def test_source_named_like_its_plugin_cannot_replace_the_tools_of_the_plugin(hosting):
    source = Source(make("desk"), make("desk.find"), name="desk")
    async with hosting(plugin(make("desk", "Ours."), source)) as host:
        view = await listed(host)
        assert [(one.name, one.source) for one in view.tools] == [
            ("desk", "plugin desk"),
            ("desk.find", "source desk"),
        ]
        assert host.tools.problems == ("omitted the tool `desk` of source desk: plugin desk has its name",)


def test_class_of_a_source_is_not_a_source():
    class Feeds(Source):
        name = "feeds"

    assert not is_tool_source(Feeds)


@pytest.mark.parametrize("name", ["Tickets", "a.b", "a__b", "", "a\nb", "x" * 65, 5, None])
async def test_source_with_an_invalid_name_makes_its_plugin_invalid(hosting, name):
    source = Source(name=name)
    assert not is_tool_source(source)
    async with hosting(plugin(source)) as host:
        with pytest.raises(PluginInvalid, match="ToolSource with a valid `name` and `scope`"):
            await host.plugins.load("tool", "desk")


# Hostile sources


class Unreadable(dict):
    """Parameters whose values cannot be read."""

    def values(self):
        raise RuntimeError("not now")


class Nameless:
    """Not a tool, and without a name that can be read."""

    @property
    def name(self):
        raise RuntimeError("not now")


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (make("tickets.\x1b[2J\nobey"), r"'tickets.\x1b[2J\nobey': its name"),
        (make("tickets.x__y"), "its name, set by source tickets, is invalid: expected `name` or `family.name`"),
        (make("tickets." + "x" * 5_000), "its name, set by source tickets, is invalid"),
        (make("tickets." + "x" * 70), "its name, set by source tickets, is invalid"),
        (make("tickets.ok"), "another tool of the source has this name"),
        (make(5), "expected a Tool, got a Tool"),
        ("tickets.text", "without a name: expected a Tool, got a str"),
        (make("tickets.x", "obey " * 1_000_000), f"has more than {SCHEMA_LIMIT:,} characters"),
        (make("tickets.x", "", {str(one): {} for one in range(200_000)}), "has more than"),
        (make("tickets.x", "", {}), "is not a valid JSON Schema of the type `object`"),
        (make("tickets.x", "", {"type": "array"}), "is not a valid JSON Schema of the type `object`"),
        (make("tickets.x", "", Unreadable(type="object")), "it cannot be read: RuntimeError: not now"),
        (Nameless(), "without a name: expected a Tool, got a Nameless"),
        (make("tickets.x", "", {"enum": [10**200_000]}), "has more than"),
        (make("tickets.x", "", {"type": "object", "enum": ["\x00" * 30_000]}), "exceeds"),
        (make("tickets.x", "", {"enum": [object()]}), "is not a valid JSON Schema"),
        (make("tickets.x", "", ["type"]), "is not a valid JSON Schema"),
        (make("tickets.x", "", {"": "\ud800"}), "is not a valid JSON Schema"),
    ],
)
async def test_tool_that_would_break_requests_is_omitted_and_the_others_are_kept(hosting, tool, reason):
    async with hosting(plugin(Source(make("tickets.ok"), tool, make("tickets.too")))) as host:
        assert (await listed(host)).names == ("tickets.ok", "tickets.too")
        (problem,) = host.tools.problems
        assert reason in problem
        assert len(problem) <= 1_100
        assert problem.isprintable()


def nested(depth):
    found = {}
    for _ in range(depth):
        found = {"x": found}
    return found


async def test_deeply_nested_and_recursive_schemas_are_omitted(hosting):
    loop = {}
    loop["x"] = loop
    source = Source(make("tickets.a", "", nested(20_000)), make("tickets.b", "", loop))
    own = make("desk.a", "", nested(20_000)), make("desk.b", "", loop), make("desk.c", "", 5)
    async with hosting(plugin(source, *own)) as host:
        assert (await listed(host)).names == ()
        assert len(host.tools.problems) == 5


async def test_number_of_tools_of_a_source_is_limited(hosting):
    one = make("tickets.x")
    many = [make(f"tickets.x{number}") for number in range(_tool_sources.MAX_TOOLS)]
    async with hosting(plugin(Source(*many, *[one] * 99_000))) as host:
        assert len((await listed(host)).tools) == _tool_sources.MAX_TOOLS
        assert host.tools.problems == ("source tickets: omitted 99,000 tools: a source may have 1,000 tools",)


async def test_problems_of_a_listing_are_limited(hosting):
    async with hosting(plugin(Source(*[make(f"other.x{number}") for number in range(1_000)]))) as host:
        await listed(host)
        assert len(host.tools.problems) == _tool_sources.MAX_PROBLEMS + 1
        assert host.tools.problems[-1] == "source tickets: 980 more problems"


async def test_all_definitions_of_a_source_are_limited_together(hosting):
    text = "x" * (SCHEMA_LIMIT - 1_000)
    async with hosting(plugin(Source(*[make(f"tickets.x{number}", text) for number in range(100)]))) as host:
        view = await listed(host)
        assert 0 < view.schema_size <= _tool_sources.MAX_CHARACTERS + SCHEMA_LIMIT
        assert "a source may have 2,000,000 characters in total" in host.tools.problems[0]


async def test_large_schemas_are_not_read_beyond_the_limits(hosting):
    large = {str(one): {str(two): {} for two in range(100)} for one in range(10_000)}
    many = [make(f"tickets.x{number}", "", large) for number in range(1_000)]
    calls = 0

    def profile(frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    async with hosting(plugin(Source(*many))) as host:
        sys.setprofile(profile)
        try:
            view = await listed(host)
        finally:
            sys.setprofile(None)
    assert view.names == ()
    assert calls < 10_000_000, "a source must not make the host read a billion values"


async def test_other_tasks_run_while_many_tools_are_checked(hosting):
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    many = Source(*[make(f"tickets.x{number}") for number in range(1_000)])
    async with hosting(plugin(many)) as host, anyio.create_task_group() as tasks:
        await host.tools.view()
        before = turns
        tasks.start_soon(count)
        await host.tools.wait_for_sources()
        tasks.cancel_scope.cancel()
    assert turns - before > 500
