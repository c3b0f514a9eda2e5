"""Programs that the user runs: through the broker, with the user as principal, and shown to the model."""

from contextlib import asynccontextmanager

import pytest
import sideband_shell.plugin
from sideband import Plugin
from sideband.hooks import Ask, Deny
from sideband.ledger import query
from sideband.ops import EgressRefused, OpDenied, OpNotFound
from sideband.tools import tool
from sideband_agent import AgentBusy, InputEmpty, RunUnfinished
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

SHELL = Plugin("op", "shell", sideband_shell.plugin)


@pytest.fixture
def stage(stage):
    """Open a host that runs programs without isolation, which has tests of its own."""

    @asynccontextmanager
    async def open_stage(turns, *plugins, settings=None, **options):
        settings = {"policy": {"isolation": "none"}, **(settings or {})}
        async with stage(turns, *plugins, settings=settings, **options) as agent:
            yield agent

    return open_stage


@pytest.fixture
def folder(tmp_path):
    """A working directory with a file."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("water the plants\n")
    return folder


@pytest.fixture
def seen(kit):
    events = []
    return events, Plugin("hook", "watcher", kit.listening(events, "user_bash", "effect", "message_end"))


async def test_program_and_its_output_are_added_to_the_conversation(stage, folder):
    async with stage(["I see"], SHELL, folder=folder) as agent:
        output = await agent.run_program(["cat", "notes.txt"])
        assert (output.command, output.text, output.exit_code) == ("cat notes.txt", "water the plants", 0)
        await agent.invoke("what does it say?")
        first, second = agent.scripted.requests[0].messages
        assert first.text == "The user ran `cat notes.txt` (exit code 0).\n\nwater the plants"
        assert second.text == "what does it say?"
        assert first.source == "program"


async def test_output_of_a_program_is_observed_while_it_runs(stage, folder, kit):
    seen = []

    def tool_progress(event):
        seen.append((event.stream, event.text))
        if event.text == "ready":
            (folder / "seen").touch()

    watcher = Plugin("hook", "watcher", kit.hooks(tool_progress=tool_progress))
    async with stage([], SHELL, watcher, folder=folder) as agent:
        output = await agent.run_program(
            ["sh", "-c", "printf ready; until [ -e seen ]; do sleep 0.01; done"], seconds=20
        )
        assert (output.text, output.timed_out) == ("ready", False)
    assert [one for one in seen if one[0] == "stdout"] == [("stdout", "ready"), ("stdout", None)]


async def test_excluded_program_is_not_added_to_the_conversation(stage, folder, seen):
    events, plugin = seen
    async with stage([], SHELL, plugin, folder=folder) as agent:
        output = await agent.run_program(["cat", "notes.txt"], exclude_from_context=True)
        assert output.text == "water the plants"
        assert agent.session.messages() == ()
    assert [one.hook for one in events] == ["user_bash", "effect"]
    assert events[0].exclude_from_context


async def test_event_precedes_the_effect(stage, folder, seen):
    events, plugin = seen
    async with stage([], SHELL, plugin, folder=folder) as agent:
        await agent.run_program(["cat", "a b"])
    assert [one.hook for one in events] == ["user_bash", "effect", "message_end"]
    assert (events[0].command, events[0].folder, events[0].exclude_from_context) == ("cat 'a b'", folder, False)


async def test_effect_is_recorded_for_the_user_in_the_session(stage, folder):
    async with stage([], SHELL, folder=folder) as agent:
        await agent.run_program(["true"])
        (record,) = await query(agent.host.ledger.folder, op="shell.run")
        assert (record.origin.principal, record.origin.session) == ("user", agent.session.id)
        assert (record.status, record.origin.tool, record.origin.run) == ("done", None, None)


async def test_failure_and_standard_error_are_shown(stage, folder):
    async with stage([], SHELL, folder=folder) as agent:
        output = await agent.run_program(["cat", "missing.txt"])
        assert output.exit_code == 1
        (message,) = agent.session.messages()
        assert "(exit code 1)" in message.text
        assert "No such file" in message.text


async def test_program_without_output_is_described(stage, folder):
    async with stage([], SHELL, folder=folder) as agent:
        await agent.run_program(["true"])
        assert agent.session.messages()[0].text == "The user ran `true` (exit code 0). It printed nothing."


async def test_program_that_exceeds_its_time_is_stopped_and_shown(stage, folder):
    async with stage([], SHELL, folder=folder) as agent:
        output = await agent.run_program(["sleep", "60"], seconds=0.2)
        assert output.timed_out
        assert "(timed out)" in agent.session.messages()[0].text


async def test_program_may_change_the_working_directory(stage, folder):
    async with stage([], SHELL, folder=folder) as agent:
        await agent.run_program(["touch", "new.txt"])
    assert (folder / "new.txt").exists()


async def test_program_has_no_network(stage, folder):
    async with stage([], SHELL, folder=folder) as agent:
        await agent.run_program(["true"])
        (record,) = await query(agent.host.ledger.folder, op="shell.run")
        assert not record.params.get("network")


async def test_long_output_keeps_its_beginning_and_end(stage, folder):
    (folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(5_000)))
    settings = {"agent": {"model": "scripted:test", "output_tokens": 100}}
    async with stage([], SHELL, settings=settings, folder=folder) as agent:
        output = await agent.run_program(["cat", "long.txt"])
    assert len(output.text) < 500
    assert output.text.startswith("line 0\n")
    assert output.text.endswith("line 4999")


async def test_secret_in_the_output_is_redacted(stage, folder):
    (folder / "notes.txt").write_text("correct-horse-battery")
    async with stage([], SHELL, folder=folder) as agent:
        agent.host.context_for("agent").protect("correct-horse-battery", "horse")
        output = await agent.run_program(["cat", "notes.txt"])
        assert not [one for one in (output.text, agent.session.messages()[0].text) if "battery" in one]


async def test_secret_in_an_argument_is_refused_and_redacted(stage, folder, seen):
    events, plugin = seen
    async with stage([], SHELL, plugin, folder=folder) as agent:
        agent.host.context_for("agent").protect("correct-horse-battery", "horse")
        with pytest.raises(EgressRefused):
            await agent.run_program(["echo", "correct-horse-battery"])
        assert agent.session.messages() == ()
    assert "battery" not in events[0].command


async def test_secret_with_a_quote_is_redacted_in_the_quoted_command(stage, folder, seen):
    events, plugin = seen
    async with stage([], SHELL, plugin, folder=folder) as agent:
        agent.host.context_for("agent").protect("correct'horse'battery", "horse")
        with pytest.raises(EgressRefused):
            await agent.run_program(["echo", "correct'horse'battery"])
    assert events[0].command == "echo '[redacted:horse]'"


async def test_output_that_is_not_text_is_shown(stage, folder):
    (folder / "notes.txt").write_bytes(b"ab\xff\n")
    async with stage([], SHELL, folder=folder) as agent:
        assert (await agent.run_program(["cat", "notes.txt"])).text == "ab\ufffd"


async def test_guards_decide_on_the_program(stage, kit, folder):
    guard = Plugin("guard", "no", kit.guard(op_call=op_call))
    async with stage([], SHELL, guard, folder=folder) as agent:
        with pytest.raises(OpDenied, match="no programs"):
            await agent.run_program(["touch", "new.txt"])
        assert agent.session.messages() == ()
        assert agent.is_idle
    assert not (folder / "new.txt").exists()


def op_call(event):
    return Deny("no programs") if event.op == "shell.run" else None


async def test_missing_op_is_an_error_with_a_hint(stage, folder):
    async with stage([], folder=folder) as agent:
        with pytest.raises(OpNotFound, match=r"shell\.run") as caught:
            await agent.run_program(["true"])
    assert "install the package" in caught.value.hint


async def test_program_without_a_name_is_refused(stage):
    async with stage([], SHELL) as agent:
        with pytest.raises(InputEmpty):
            await agent.run_program([])


async def test_busy_agent_runs_no_program(stage, kit, folder):
    @tool("other")
    async def other(params: kit.Text, ctx) -> str:
        """Run a program."""
        with pytest.raises(AgentBusy):
            await ctx.agent.run_program(["touch", "new.txt"])
        return "refused"

    turns = [Turn(tool_calls=[("other", {})]), "ok"]
    async with stage(turns, SHELL, Plugin("tool", "other", other), folder=folder) as agent:
        await agent.invoke("hi")
        assert agent.session.messages()[2].text == "refused"
    assert not (folder / "new.txt").exists()


async def test_program_is_not_added_between_a_tool_call_and_its_result(stage, kit, folder):
    guard = Plugin("guard", "ask", kit.guard(tool_call=tool_call))
    async with stage([Turn(tool_calls=[("echo", {"text": "x"})])], SHELL, kit.echo, guard, folder=folder) as agent:
        assert (await agent.invoke("hi")).status == "parked"
        with pytest.raises(RunUnfinished) as caught:
            await agent.run_program(["touch", "new.txt"])
        assert "exclude" in caught.value.hint
        assert not (folder / "new.txt").exists()
        await agent.run_program(["touch", "new.txt"], exclude_from_context=True)
    assert (folder / "new.txt").exists()


def tool_call(event):
    return Ask("May it?")
