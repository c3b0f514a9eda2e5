"""The example plugins of the pages on plugins work."""

import hashlib
import importlib.util
import re
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import anyio
import pytest
import sideband_http.plugin
import sideband_llm.plugin
import sideband_store_sqlite.plugin
from attrs import evolve
from pydantic import BaseModel
from sideband import Host, Level, Plugin
from sideband.approvals import Approval
from sideband.hooks import ChatCommands, StatusLine, ToolCandidate, ToolSelection
from sideband.ledger import query
from sideband.ops import OpDenied, Recorded
from sideband.settings import load_settings, trust_plugins
from sideband.tools import tool
from sideband_agent import Agent
from sideband_scripted import Scripted, Turn

PAGE = "docs/plugins"


class NoParams(BaseModel):
    pass


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stage(tmp_path):
    """Open an agent with a scripted model."""

    @asynccontextmanager
    async def open_stage(turns, *plugins, model="scripted:test", keep=20_000, approver=None):
        own = [
            Plugin("op", "llm", sideband_llm.plugin),
            Plugin("store", "sqlite", sideband_store_sqlite.plugin),
            Plugin("provider", "scripted", turns if isinstance(turns, Scripted) else Scripted(turns)),
            *plugins,
        ]
        settings = {"agent": {"compaction": {"keep": keep}}}
        host = Host(home=tmp_path / "home", plugins=own, autoload=False, settings=settings)
        async with host, Agent(host, model=model, approver=approver) as agent:
            yield agent

    return open_stage


@pytest.mark.anyio
async def test_example_op_family_works_and_enforces_its_scope(tmp_path, page):
    path = tmp_path / "sideband_clock.py"
    path.write_text(page(PAGE).example("python", "class NowParams"))
    clock = load(path)
    async with Host(home=tmp_path / "home", plugins=[Plugin("op", "clock", clock)]) as host:
        assert "+0" in await host.op("clock.now", {"zone": "Europe/Vienna"}, grants=["clock:zone=Europe/Vienna"])
        with pytest.raises(OpDenied):
            await host.op("clock.now", {"zone": "UTC"}, grants=["clock:zone=Europe/Vienna"])


@pytest.mark.anyio
async def test_example_error_is_caught_by_a_skill_and_its_result_has_keys(tmp_path, page, make_skill):
    module = page(PAGE).module("class AddressNotFound")
    folder = make_skill("where", page(PAGE).example("python", "except geo.AddressNotFound"))
    host = Host(home=tmp_path / "home", plugins=[Plugin("op", "geo", module)], skill_dirs=[folder])
    async with host:
        assert await host.call("where.latitude", address="Mill Lane 7") == 48.2
        assert await host.call("where.latitude", address="Mill Lane 8") == "Mill Lane 8 is unknown"


@pytest.mark.anyio
async def test_example_op_can_be_undone_until_the_board_changes(tmp_path, page):
    module = page(PAGE).module("class WriteParams")
    file = tmp_path / "home" / "board.txt"
    async with Host(home=tmp_path / "home", plugins=[Plugin("op", "board", module)]) as host:
        effects = []
        for text in ("first", "second"):
            await host.op("board.write", {"text": text}, on_effect=lambda report: effects.append(report.id))
        assert file.read_text() == "second"
        await host.undo(await host.plan_undo(effects[1]))
        assert file.read_text() == "first"
        file.write_text("something else")
        plan = await host.plan_undo(effects[0])
        assert (plan.steps, plan.remains) == ((), ("the board has changed since",))


@pytest.mark.anyio
async def test_example_op_reconciles_an_effect(tmp_path, page):
    module = page(PAGE).module("class WriteParams")
    ctx = SimpleNamespace(home=tmp_path)
    (tmp_path / "board.txt").write_text("now")
    digests = {text: hashlib.sha256(text.encode()).hexdigest() for text in ("now", "then")}
    for note, happened in (({"after": "now"}, True), ({"before": "now", "after": "then"}, False), ({}, None)):
        recorded = Recorded(effect="1", op="board.write", note={name: digests[text] for name, text in note.items()})
        found = await module.reconcile(recorded, ctx)
        assert (found and found.happened) == happened


@pytest.mark.anyio
async def test_example_guard_denies_requests_at_night(tmp_path, page):
    guard = page(PAGE).module("datetime.now().hour < 6")
    guard.datetime = SimpleNamespace(now=lambda: SimpleNamespace(hour=3))
    async with Host(home=tmp_path / "home", plugins=[Plugin("guard", "night", guard)]) as host:
        with pytest.raises(OpDenied, match="before 6:00"):
            await host.op("http.get", {"url": "http://127.0.0.1:9/"})


@pytest.mark.anyio
async def test_example_guard_denies_what_leaves_after_a_private_file_was_read(tmp_path, page):
    guard = Plugin("guard", "stay", page(PAGE).module("class PrivateFilesStay"))
    private = tmp_path / "private" / "diary.txt"
    private.parent.mkdir()
    private.write_text("dear diary")
    with serving("news") as url:
        async with Host(home=tmp_path / "home", plugins=[guard]) as host:
            assert (await host.op("http.get", {"url": url}))["status"] == 200
            assert (await host.op("files.read", {"path": str(private)}))["content"] == "dear diary"
            with pytest.raises(OpDenied, match="nothing may leave this machine"):
                await host.op("http.get", {"url": url})
            assert await host.op("crypto.random", {"length": 2})


@pytest.mark.anyio
async def test_example_scope_depends_on_the_configuration(tmp_path, page):
    family = Plugin("op", "desk", page(PAGE).module("class DeskScope"))
    settings = {"plugins": {"desk": {"desk": "billing"}}}
    async with Host(home=tmp_path / "home", plugins=[family], settings=settings) as host:
        assert await host.op("desk.ticket", {"number": 7}, grants=["desk:name=billing"]) == "ticket 7 of billing"
        with pytest.raises(OpDenied):
            await host.op("desk.ticket", {"number": 7}, grants=["desk:name=support"])


@pytest.mark.anyio
async def test_example_lifespan_passes_configuration_to_an_op(tmp_path, page):
    from pydantic import BaseModel
    from sideband.ops import OpContext, OpFamily, op

    class Nothing(BaseModel):
        pass

    @op("zone.show")
    async def show(params: Nothing, ctx: OpContext) -> str:
        return ctx.state

    module = page(PAGE).module("lifespan")
    module.sideband_ops = lambda: OpFamily(name="zone", ops=(show,))
    settings = {"plugins": {"zone": {"zone": "Mars"}}}
    async with Host(home=tmp_path / "home", plugins=[Plugin("op", "zone", module)], settings=settings) as host:
        assert await host.op("zone.show", {}) == "the zone is Mars"


@pytest.mark.anyio
async def test_example_tool_gets_values_of_the_host(stage, page):
    module = page(PAGE).module("class NoteParams")
    turns = [Turn(tool_calls=[("note", {"text": "hello", "author": "the model"})]), "done"]
    async with stage(turns, Plugin("tool", "note", module)) as agent:
        await agent.invoke("write a note")
        (result,) = results(agent)
        assert result.text == f"user ({agent.session.channel}): hello"


@pytest.mark.anyio
async def test_example_numbers_are_not_returned_twice(tmp_path, page):
    numbers = []
    family = Plugin("op", "number", page(PAGE).module("number.next"))

    async def take(host):
        numbers.append(await host.op("number.next", {"series": "invoices"}))

    async with Host(home=tmp_path, plugins=[family]) as one, Host(home=tmp_path, plugins=[family]) as other:
        async with anyio.create_task_group() as tasks:
            for host in (one, other) * 10:
                tasks.start_soon(take, host)
        assert await other.op("number.next", {"series": "letters"}) == 1
    assert sorted(numbers) == list(range(1, 21))


@pytest.mark.anyio
async def test_example_guard_limits_changes_for_all_hosts_of_a_home(tmp_path, page):
    from pydantic import BaseModel
    from sideband.ops import OpContext, OpFamily, op

    class Nothing(BaseModel):
        pass

    @op("post.send", level=Level.CONTROLLED)
    async def send(params: Nothing, ctx: OpContext) -> None: ...

    family = SimpleNamespace(sideband_ops=lambda: OpFamily(name="post", ops=(send,)))
    for calls in (12, 8):
        plugins = [Plugin("guard", "hourly", page(PAGE).module("class HourlyLimit")), Plugin("op", "post", family)]
        async with Host(home=tmp_path / "home", plugins=plugins) as host:
            for _ in range(calls):
                await host.op("post.send", {})
    async with Host(home=tmp_path / "home", plugins=plugins) as host:
        with pytest.raises(OpDenied, match="0 of 20 within 3,600 s are left") as caught:
            await host.op("post.send", {})
        assert caught.value.hint.startswith("try again in 3,")


def results(agent):
    return [one for one in agent.session.messages() if one.role == "tool"]


@pytest.mark.anyio
async def test_example_tool_runs_and_validates_its_arguments(stage, page):
    turns = [Turn(tool_calls=[("dice__roll", {"sides": 2}), ("dice__roll", {"sides": 1})]), "done"]
    async with stage(turns, Plugin("tool", "dice", page(PAGE).module("dice.roll"))) as agent:
        await agent.invoke("roll")
        rolled, rejected = results(agent)
    assert rolled.text in ('{"rolled": 1}', '{"rolled": 2}')
    assert "greater than or equal to 2" in rejected.text


@pytest.mark.anyio
async def test_example_selection_sends_the_tools_of_sources_only_if_they_fit(page):
    select = page(PAGE).module("def tool_selection").tool_selection
    tools = [ToolCandidate("dice__roll", "", "plugin dice", 40), ToolCandidate("feeds__daily", "", "source feeds", 60)]
    assert select(ToolSelection(tools, messages=[], tokens=1_000)) is None
    assert select(ToolSelection(tools, messages=[], tokens=999)) == ["dice__roll"]


@pytest.mark.anyio
async def test_example_selection_leaves_out_large_tools_of_a_source_until_the_model_calls_one(stage, page, tmp_path):
    module = page(PAGE).module("class Feeds")
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "feeds.txt").write_text("daily http://127.0.0.1:9/\nweekly http://127.0.0.1:9/\n")
    original = module.feed

    def feed(name, url):
        return evolve(original(name, url), description="x" * 60_000)

    module.feed = feed
    plugins = [Plugin("tool", "feeds", module), Plugin("hook", "select", page(PAGE).module("def tool_selection"))]
    provider = Scripted([Turn(tool_calls=[("feeds__daily", {})]), "done"])
    async with stage(provider, *plugins) as agent:
        with anyio.fail_after(60):
            await agent.host.tools.wait_for_sources()
        assert agent.tools.names == ("feeds.daily", "feeds.weekly")
        await agent.invoke("read")
        assert [[one.name for one in request.tools] for request in provider.requests] == [[], ["feeds__daily"]]


@contextmanager
def serving(text):
    """Run a server that answers each request with a text, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_): ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.anyio
async def test_example_tool_source_follows_its_file_and_its_calls_are_effects(stage, page, tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    file = tmp_path / "home" / "feeds.txt"
    turns = [Turn(tool_calls=[("feeds__daily", {})]), "done"]
    plugins = Plugin("tool", "feeds", page(PAGE).module("class Feeds")), Plugin("op", "http", sideband_http.plugin)
    with serving("news") as url:
        file.write_text(f"daily {url}\n")
        async with stage(turns, *plugins) as agent:
            with anyio.fail_after(60):
                await agent.host.tools.wait_for_sources()
            assert agent.tools.names == ("feeds.daily",)
            await agent.invoke("read")
            assert results(agent)[0].text == "news"
            (effect,) = await query(agent.host.ledger.folder, op="http.get")
            assert (effect.origin.plugin, effect.origin.tool) == ("feeds", "feeds.daily")
            file.write_text(f"weekly {url}\n")
            with anyio.fail_after(60):
                while agent.tools.names != ("feeds.weekly",):  # noqa: ASYNC110  there is no event for it
                    await anyio.sleep(0.01)


@pytest.mark.anyio
async def test_example_agent_guard_asks_before_the_third_change_of_each_run(stage, page):
    questions = []

    async def approver(request):
        questions.append(request.question)
        return Approval("deny")

    roll = page(PAGE).module("dice.roll")

    @tool("change", level=Level.CONTROLLED)
    async def change(params: roll.RollParams, ctx) -> str:
        """Change something."""
        return "changed"

    changes = Turn(tool_calls=[("change", {})] * 3)
    plugins = [Plugin("tool", "change", change), Plugin("guard", "changes", page(PAGE).module("class ApproveChanges"))]
    async with stage([changes, "one", changes, "two"], *plugins, approver=approver) as agent:
        await agent.invoke("first")
        await agent.invoke("second")
        assert [one.is_error for one in results(agent)] == [False, False, True] * 2
    assert questions == ["allow change number 3?"] * 2


@pytest.mark.anyio
async def test_example_provider_answers_and_rejects_long_messages(stage, page):
    async with stage([], Plugin("provider", "echo", page(PAGE).module("class Echo")), model="echo:twice") as agent:
        result = await agent.invoke("hello")
        assert (result.status, result.text) == ("completed", "hello hello")
        assert (result.usage.output, result.usage.cost) == (10, 0)
        failed = await agent.invoke("hello " * 1_000)
    assert (failed.status, failed.error["code"], failed.error["status"]) == ("failed", "provider.refused", 413)


@pytest.mark.anyio
async def test_example_compaction_strategy_keeps_only_user_messages(stage, page):
    strategy = Plugin("hook", "words", page(PAGE).module("async def compaction"))
    async with stage(["one " * 200, "two " * 200, "three"], strategy, keep=10) as agent:
        for text in ("first", "second", "third"):
            await agent.invoke(text)
        assert await agent.compact()
        summary, *_ = agent.session.messages()
    assert "The user said:\nfirst" in summary.text
    assert "one one" not in summary.text


@pytest.mark.anyio
async def test_example_chat_command_counts_messages(stage, page):
    event = ChatCommands()
    async with stage(["one", "two"], Plugin("hook", "count", page(PAGE).module("chat_commands"))) as agent:
        await agent.invoke("first")
        (found,) = await agent.hooks.collect(event)
        ctx = agent.hooks.context_of(found.plugin, event)
        assert await found.value.run("", ctx) == "2 messages"
        assert await found.value.run("first", ctx) == "1 messages"


@pytest.mark.anyio
async def test_example_status_counts_messages(stage, page):
    async with stage(["one"], Plugin("hook", "count", page(PAGE).module("def status_line"))) as agent:
        await agent.invoke("first")
        assert [one.value for one in await agent.hooks.collect(StatusLine())] == ["2 messages"]


@pytest.mark.anyio
async def test_example_route_answers_what_it_knows_and_leaves_the_rest_to_the_model(stage, page):
    async with stage(["I do not know."], Plugin("hook", "versions", page(PAGE).module("def routes"))) as agent:
        result = await agent.invoke("Which version of anyio do you use?")
        assert re.fullmatch(r"anyio [\d.]+ is installed\.", result.text)
        assert (await agent.invoke("Which version of no-such-package?")).text == "I do not know."


@pytest.mark.anyio
async def test_example_check_of_answers_asks_for_a_source_once(stage, page):
    @tool("look")
    async def look(params: NoParams, ctx) -> str:
        """Look."""
        return "about 7"

    turns = [Turn(tool_calls=[("look", {})]), "It is 7.", "It is 7.  \r\nI do not know where."]
    plugins = [Plugin("hook", "sources", page(PAGE).module("def answer")), Plugin("tool", "look", look)]
    async with stage(turns, *plugins) as agent:
        assert (await agent.invoke("How many?")).text == "It is 7.\nI do not know where."
        assert agent.session.messages()[-2].text.startswith("Name the address")


@pytest.mark.anyio
async def test_example_program_runs_a_tool_with_a_scripted_model(page, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SIDEBAND_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, "sideband_dice", page(PAGE).module("dice.roll"))
    await page(PAGE).module("sideband_dice").main()
    assert capsys.readouterr().out.rstrip().endswith("There you are.")


@pytest.mark.anyio
async def test_example_source_of_secrets_is_opened_at_startup(tmp_path, page):
    path = tmp_path / "sideband_tokens.py"
    path.write_text(page(PAGE).example("python", "class TokenFile"))
    (tmp_path / "home" / "tokens").mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    (tmp_path / "home" / "tokens" / "list").write_text("github https://api.github.com s3cr3t-value\n")
    async with Host(home=tmp_path / "home", plugins=[Plugin("secrets", "tokens", load(path))]) as host:
        assert host.redactor.text("s3cr3t-value") == "[redacted:github]"
        assert not host.broker.sources.closed


@pytest.mark.anyio
async def test_example_plugin_adds_the_skills_in_its_folder(tmp_path, page):
    skill = tmp_path / "skills" / "notes"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: notes\ndescription: Takes notes.\n---\n")
    (tmp_path / "books.py").write_text(page(PAGE).example("python", "def resources_discover"))
    async with Host(home=tmp_path / "home", plugins=[Plugin("hook", "books", load(tmp_path / "books.py"))]) as host:
        origins = {one.key: one.origin for one in (await host.skills()).skills}
    assert origins["notes"] == "plugin books"


@pytest.mark.anyio
async def test_example_reloads_a_plugin_or_states_why_not(tmp_path, page):
    update = page(PAGE).module("async def update").update
    async with Host(home=tmp_path / "home") as host:
        assert (await update(host, "progress")).startswith("op.progress ")
        assert "its store is in use for all of the host; restart the program" in await update(host, "sqlite")


@pytest.mark.anyio
async def test_example_setting_loads_the_first_example_from_a_local_file(tmp_path, page):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "sideband.toml").write_text(page(PAGE).example("toml", "[policy.files]"))
    (home / "sideband_clock.py").write_text(page(PAGE).example("python", "class NowParams"))
    trust_plugins(home, [home / "sideband_clock.py"])
    async with Host(home=home, settings=load_settings(home)) as host:
        assert "+0" in await host.op("clock.now", {"zone": "Europe/Vienna"})


@pytest.mark.anyio
async def test_example_sandbox_does_not_claim_what_its_wrapper_does_not_isolate(tmp_path, page, monkeypatch):
    (sandbox,) = page(PAGE).module("class Bubble").sideband_sandboxes()
    monkeypatch.setenv("PATH", str(tmp_path))
    probe = await sandbox.probe()
    assert (probe.isolation.label, probe.hints[0][:18]) == ("none", "install bubblewrap")
    wrapper = tmp_path / "bwrap"
    wrapper.write_text('#!/bin/sh\nwhile [ "$1" != "-I" ]; do program=$1; shift; done\nexec "$program" "$@"\n')
    wrapper.chmod(0o700)
    probe = await sandbox.probe()
    assert (probe.isolation.label, len(probe.gaps)) == ("none", 4)


def test_example_skill_package_passes_its_own_tests(tmp_path, walk):
    """The tests of the package are run by pytest, in another process."""
    walk("docs/plugins/skill-packages.md", tmp_path)
    program = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        tmp_path,
        tmp_path / "tests",
    ]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
