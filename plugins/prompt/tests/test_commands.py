"""Markdown files as slash commands, in a real agent."""

from contextlib import asynccontextmanager

import pytest
import sideband_llm.plugin
import sideband_prompt.guard
import sideband_prompt.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.hooks import ChatCommands, Input, Transform, hookimpl
from sideband.settings import trust_project
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Broken, Scripted, Turn

pytestmark = pytest.mark.anyio


@pytest.fixture
def command(home, write):
    """Write a command of the user."""
    return lambda name, text: write(home / "commands" / f"{name}.md", text)


@pytest.fixture
def make(home, project):
    """Open an agent in the project, with the scripted turns and more plugins."""

    @asynccontextmanager
    async def make(*turns, more=(), tools=(), session=None):
        scripted = Scripted(list(turns) or ["done"] * 5)
        plugins = [
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("provider", "scripted", scripted),
            Plugin("hook", "prompt", sideband_prompt.plugin),
            Plugin("guard", "command-tools", sideband_prompt.guard),
            *more,
        ]
        async with Host(home=home, plugins=plugins, autoload=False) as host:
            options = {"own_tools": tools, "folder": project, "session": session}
            async with Agent(host, model="scripted:test", **options) as agent:
                yield agent, scripted

    return make


@pytest.fixture
def sent(make):
    """Return what the model gets for an input."""

    async def sent(text, *, more=(), **options):
        async with make(more=more) as (agent, scripted):
            assert (await agent.invoke(text, **options)).status == "completed"
        return scripted.requests[0].messages[-1].text

    return sent


class Nothing(BaseModel):
    pass


@tool("look.here", read_only=True)
async def look(params: Nothing, ctx) -> str:
    """Look."""
    return "/fix everything"


@tool("look.away", read_only=True)
async def away(params: Nothing, ctx) -> str:
    """Look away."""
    return "seen"


async def test_command_is_replaced_by_the_text_of_its_file(command, sent):
    command(
        "fix", "---\ndescription: Fix an issue\nargument-hint: [issue] [why]\n---\n\nFix issue $1, since $2. ($3)\n"
    )
    assert await sent("/fix 4 'it is late'") == "Fix issue 4, since it is late. ()"


@pytest.mark.parametrize(
    ("text", "typed", "expected"),
    [
        ("All: $ARGUMENTS!", "/x a  'b c'", "All: a  'b c'!"),
        ("Costs $10, $ARGUMENTSX and $0", "/x", "Costs $10, $ARGUMENTSX and $0"),
        ("Review.", "/x", "Review."),
        ("Review.", "/x this\nand that", "Review.\n\nthis\nand that"),
        ("$1", "/x it's", "it's"),
        ("$1", "/x $2 secret", "$2"),
        ("Say.\u202e\U000e0041", "/x", "Say."),
        ("---\nnot closed", "/x", "---\nnot closed"),
    ],
)
async def test_arguments_are_put_into_their_places(command, sent, text, typed, expected):
    command("x", text)
    assert await sent(typed) == expected


async def test_commands_of_folders_have_their_names(command, sent):
    command("git/Squash_All", "Squash.")
    assert await sent("/git:squash_all") == "Squash."


@pytest.mark.parametrize("typed", ["/fixed", "fix", " /fix", "Run /fix", "/fix:x", "/FIX", "//fix"])
async def test_other_text_stays_as_it_is(command, sent, typed):
    command("fix", "Fix.")
    assert await sent(typed) == typed


async def test_files_that_a_channel_adds_follow_the_text(command, sent):
    command("fix", "Fix $ARGUMENTS now.")
    added = '\n\n<file name="a.py">\n$1 /fix\n</file>'
    assert await sent(f"/fix @a.py{added}") == f"Fix @a.py now.{added}"


async def test_nothing_in_a_file_is_run_or_read(command, sent, project, write):
    write(project / "secret.txt", "the launch codes")
    text = "!`touch ran`\n!touch ran\n@secret.txt\n/fix"
    command("fix", text)
    assert await sent("/fix") == text
    assert not (project / "ran").exists()


async def test_commands_of_a_project_need_its_trust(home, project, write, sent):
    write(project / ".claude/commands/a.md", "from claude")
    write(project / ".sideband/commands/b.md", "from sideband")
    write(project / "commands/c.md", "beside the file")
    assert [await sent(f"/{name}") for name in "abc"] == ["/a", "/b", "/c"]
    trust_project(home, project)
    assert [await sent(f"/{name}") for name in "abc"] == ["from claude", "from sideband", "/c"]
    write(project / "sideband.toml", "")
    trust_project(home, project)
    assert await sent("/c") == "beside the file"


async def test_project_cannot_replace_a_command_of_the_user(home, project, write, sent, listed):
    trust_project(home, project)
    write(project / ".claude/commands/fix.md", "theirs")
    write(home / "commands/fix.md", "mine")
    assert await sent("/fix") == "mine"
    assert ".claude/commands/fix.md: " in await listed()


@pytest.fixture
def listed(make):
    """Return what `/commands` shows."""

    async def listed():
        async with make() as (agent, _):
            found = await agent.hooks.collect(ChatCommands())
            (one,) = [each for each in found if each.value.name == "commands"]
            return await one.value.run("", agent.hooks.context_of(one.plugin, ChatCommands()))

    return listed


async def test_files_that_cannot_be_commands_are_listed_with_the_reason(home, write, tmp_path, listed, sent):
    write(home / "commands/two words.md", "x")
    write(home / "commands/empty.md", "---\ndescription: x\n---\n")
    write(home / "commands/huge.md", "x" * 70_000)
    write(tmp_path / "secret.md", "the launch codes")
    (home / "commands/link.md").symlink_to(tmp_path / "secret.md")
    (home / "commands/folder").symlink_to(tmp_path)
    text = await listed()
    for words in ("two words.md: its name", "empty.md: it is empty", "huge.md: larger than", "link.md: it leads out"):
        assert words in text
    assert await sent("/folder:secret") == "/folder:secret"
    assert await sent("/link") == "/link"


async def test_linked_folder_out_of_the_project_is_not_searched(home, project, write, tmp_path, sent):
    trust_project(home, project)
    write(tmp_path / "elsewhere/fix.md", "the launch codes")
    (project / ".claude").mkdir()
    (project / ".claude/commands").symlink_to(tmp_path / "elsewhere")
    assert await sent("/fix") == "/fix"


async def test_linked_folder_and_deep_one_are_not_searched(home, command, listed):
    command("git/fix", "x")
    command("a/b/c/d/low", "x")
    (home / "commands/again").symlink_to("git")
    shown = await listed()
    assert "/git:fix" in shown
    assert "/again:" not in shown
    assert ":low" not in shown


async def test_commands_are_offered_to_chats_with_summary_and_usage(command, make):
    command("fix", '---\ndescription: "Fix an issue"\nargument-hint: [issue] [why]\n---\nFix $1.')
    command("git/log", "# Read the log\n\nand say what changed")
    async with make() as (agent, _):
        found = [one.value for one in await agent.hooks.collect(ChatCommands())]
    assert [(one.name, one.summary, one.usage, one.run) for one in found[1:]] == [
        ("fix", "Fix an issue", "[issue] [why]", None),
        ("git:log", "Read the log", "", None),
    ]


@pytest.mark.parametrize("source", ["api", "plugin", "schedule", "agent"])
async def test_only_text_of_the_user_runs_a_command(command, sent, source):
    command("fix", "Fix.")
    assert await sent("/fix", source=source) == "/fix"


class Says:
    """A plugin that puts the text of a server in the place of the input."""

    @hookimpl(before="prompt")
    def input(self, event: Input):
        return Transform(event.text.replace("hello", "/fix"))


async def test_text_of_another_plugin_runs_no_command(command, sent):
    command("fix", "Fix.")
    assert await sent("hello", more=[Plugin("hook", "says", Says())]) == "/fix"
    assert await sent("/fix hello", more=[Plugin("hook", "says", Says())]) == "/fix /fix"


async def test_text_of_a_tool_or_a_model_runs_no_command(command, make):
    command("fix", "Fix $ARGUMENTS.")
    async with make(Turn("/fix it", tool_calls=[("look__here", {})]), "/fix it", tools=[look]) as (agent, scripted):
        result = await agent.invoke("look")
    assert result.text == "/fix it"
    assert [message.text for message in scripted.requests[-1].messages][-1] == "/fix everything"


class Follows:
    """A plugin that queues an input when a run ends."""

    def __init__(self):
        self.done = False

    @hookimpl
    def agent_end(self, event, ctx):
        if not self.done:
            self.done = True
            ctx.follow_up("/fix it")


async def test_input_that_a_plugin_queues_runs_no_command(command, make):
    command("fix", "Fix.")
    async with make("one", "two", more=[Plugin("hook", "follows", Follows())]) as (agent, scripted):
        await agent.invoke("hello")
    assert scripted.requests[-1].messages[-1].text == "/fix it"


async def test_run_of_a_command_may_use_only_the_tools_that_it_allows(command, make):
    command("fix", "---\nallowed-tools: look.here, Bash(git log:*)\n---\nFix.")
    calls = Turn(tool_calls=[("look__here", {}), ("look__away", {})])
    async with make(calls, "done", calls, "done", tools=[look, away]) as (agent, scripted):
        await agent.invoke("/fix")
        allowed, denied = scripted.requests[1].messages[-2:]
        assert not allowed.is_error
        assert "the command /fix allows these tools only: look.here, command(git log *)" in denied.text
        await agent.invoke("and now?")  # the limit has ended with the run
        assert [one.is_error for one in scripted.requests[3].messages[-2:]] == [False, False]


async def test_command_that_allows_no_known_tool_may_use_none(command, make, caplog):
    command("fix", "---\nallowed-tools:\n  - NotebookEdit\n  - Task\n---\nFix.")
    async with make(Turn(tool_calls=[("look__away", {})]), "done", tools=[away]) as (agent, scripted):
        await agent.invoke("/fix")
    assert "allows these tools only: none" in scripted.requests[1].messages[-1].text
    assert "NotebookEdit, Task in `allowed-tools` means no tool here" in caplog.text


async def test_limit_holds_when_the_run_is_resumed_by_another_process(command, make):
    command("fix", "---\nallowed-tools: look.here\n---\nFix.")
    broken = Broken()
    async with make(broken, tools=[look, away]) as (agent, _):
        assert (await agent.invoke("/fix")).status == "failed"
        session = agent.session.id
    async with make(Turn(tool_calls=[("look__away", {})]), "done", tools=[look, away], session=session) as (
        agent,
        scripted,
    ):
        assert (await agent.resume()).status == "completed"
    assert "the command /fix allows these tools only: look.here" in scripted.requests[1].messages[-1].text
