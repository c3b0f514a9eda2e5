"""The examples and tables of the page on agents are correct."""

import ast
import re
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace

import pytest
import sideband_llm.plugin
import sideband_sql.plugin
import sideband_store_sqlite.plugin
from pydantic import BaseModel
from sideband import Host, Plugin
from sideband.hooks import HOOK_SPECS, hookimpl
from sideband.tools import Tool, tool
from sideband_agent import Agent, RunResult
from sideband_scripted import Scripted, Turn

PAGE = "docs/agents.md"


@pytest.fixture
def stage(tmp_path):
    """Open an agent with a scripted model."""

    @asynccontextmanager
    async def open_stage(turns, *plugins):
        own = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", "scripted", Scripted(turns)),
            *plugins,
        ]
        # A known context window saves the `llm.models` effect.
        settings = {"agent": {"context_window": 100_000}}
        host = Host(home=tmp_path / "home", plugins=own, autoload=False, settings=settings)
        async with host, Agent(host, model="scripted:test") as agent:
            yield agent

    return open_stage


def test_commands_print_the_documented_results(talker, sideband, page):
    printed = []
    for words in page(PAGE).commands():
        done = sideband(*words, folder=talker)
        assert done.returncode == 0, (words, done.stderr)
        printed.append(done.stdout)
    assert printed[:2] == ["Noted.\n", "You wanted to water the plants.\n"]
    assert "Remember to water the plants." in printed[2]
    assert printed[3].count("tool.call") >= 2


def test_program_runs_the_agent(talker, sideband, page, run_program):
    first, *_ = page(PAGE).commands()
    sideband(*first, folder=talker)  # remembers the grant of the skill
    done = run_program(page(PAGE).example("python", "Budget(money="), talker)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("completed Noted. ")
    assert second == "You wanted to water the plants. 0.0"


def test_program_follows_several_sessions(talker, sideband, page, run_program):
    first, *_ = page(PAGE).commands()
    sideband(*first, folder=talker)  # remembers the grant of the skill
    done = run_program(page(PAGE).example("python", "agent.events()"), talker)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["garage: completed", "kitchen: completed"]


class Nothing(BaseModel):
    """Empty parameters."""


@tool("work")
async def work(params: Nothing, ctx) -> str:
    """Work."""
    await ctx.progress(message="working")
    return "worked"


def listener(calls):
    def make(name):
        def listen(event):
            calls.append(name)

        listen.__name__ = name
        return hookimpl(listen)

    return type("Listener", (), {name: staticmethod(make(name)) for name in HOOK_SPECS})


@pytest.mark.anyio
async def test_hooks_of_a_run_are_called_in_the_order_of_the_table(stage, page):
    calls = []
    plugins = [Plugin("tool", "work", work), Plugin("guard", "listener", listener(calls))]
    async with stage([Turn(tool_calls=[("work", {})]), "done"], *plugins) as agent:
        calls.clear()
        await agent.invoke("work")
    once = [name for n, name in enumerate(calls) if (name, calls[n - 1]) != ("message_update", "message_update")]
    rows = re.findall(r"^\| [a-z].* \| (`[a-z_` ]+`) \|$", page(PAGE).section("Runs"), re.MULTILINE)
    steps = [re.findall(r"\w+", row) for row in rows]
    *first_turn, last_answer, end, settled = steps
    request = first_turn[4]
    expected = [*first_turn, request, last_answer, end, settled, ["session_shutdown"]]
    assert once == [name for step in expected for name in step]


def test_hooks_named_on_the_page_exist(page):
    named = set(re.findall(r"`((?:agent|turn|message|tool|session|retry|model|before|after)_\w+)`", page(PAGE).text))
    assert named - {"tool_calls"} <= set(HOOK_SPECS)


def test_page_names_the_attributes_of_a_result(page):
    for name in RunResult.__annotations__:
        assert f"`{name}`" in page(PAGE).text or name == "exit_code", name


@pytest.mark.anyio
async def test_example_program_offers_and_withdraws_tools(page, monkeypatch, tmp_path):
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path))
    (tmp_path / "sideband.toml").write_text('[agent]\nmodel = "own:any"\n')
    script = [Turn(tool_calls=[("weather", {})]), "Yes.", Turn(tool_calls=[("traffic", {}), ("weather", {})]), "No."]
    module = page(PAGE).module("own_tools=[")
    module.Host = partial(Host, plugins=[Plugin("provider", "own", model := Scripted(script, name="own"))])
    await module.main()
    results = [one.text for one in model.requests[-1].messages if one.role == "tool"]
    assert results[:2] == ["rain", "a jam on the ring road"]
    assert results[2].startswith("unknown tool `weather`")


@pytest.mark.anyio
async def test_example_tool_emits_the_names_of_files(stage, page, tmp_path):
    (tmp_path / "data").mkdir()
    for name in "ab":
        (tmp_path / "data" / name).write_text(name)
    events = []
    observer = SimpleNamespace(tool_progress=hookimpl(_taking(events)))
    compute = page(PAGE).module("ChecksumsParams").compute_checksums
    turns = [Turn(tool_calls=[("checksums", {"folder": str(tmp_path / "data")})]), "done"]
    async with stage(turns, Plugin("tool", "checksums", compute), Plugin("hook", "observer", observer)) as agent:
        await agent.invoke("compute the checksums")
    assert "".join(event.text or "" for event in events) == "a\nb\n"
    assert [event.message for event in events if event.message] == ["reading"]


def _taking(events):
    def tool_progress(event):
        events.append(event)

    return tool_progress


@pytest.mark.anyio
async def test_example_tool_copies_tables_and_rejects_invalid_arguments(stage, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backup = page(PAGE).module("BackupParams").backup
    assert isinstance(backup, Tool)
    turns = [Turn(tool_calls=[("backup", {"tables": ["notes"]})]), Turn(tool_calls=[("backup", {"tables": []})]), "ok"]
    plugins = [Plugin("tool", "backup", backup), Plugin("op", "sql", sideband_sql.plugin)]
    async with stage(turns, *plugins) as agent:
        await agent.host.op("sql.execute", {"db": "notes.db", "sql": "CREATE TABLE notes (text TEXT)"})
        await agent.invoke("make a copy")
        done, rejected = [one for one in agent.session.messages() if one.role == "tool"]
        tables = await agent.host.op("sql.query", {"db": "notes.db", "sql": "SELECT name FROM sqlite_master"})
    assert (done.text, done.is_error, done.metadata["tables"]) == ("copied notes", False, 1)
    assert {"effect", "ms"} <= set(done.metadata)
    assert (rejected.is_error, rejected.metadata["code"]) == (True, "tool.rejected")
    assert {"name": "notes_backup"} in tables["rows"]


def test_listed_result_codes_are_those_of_the_agent(page, root):
    found = set()
    for path in (root / "agent/src/sideband_agent").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(re.findall(r"^(?:tool|effect)\.(?!call$)[a-z]+$", node.value))
    listed = re.findall(r"^\| `((?:tool|effect)\.\w+)` \|", page(PAGE).text, re.MULTILINE)
    assert set(listed) == found | {"effect.unknown"}


def test_page_lists_exactly_the_chat_commands(page):
    from sideband_cli._chat._commands import OWN_CHAT_COMMANDS

    names = {command.name for command in OWN_CHAT_COMMANDS}
    assert set(re.findall(r"`/([a-z]+)`", page(PAGE).section("Chat commands"))) == names
