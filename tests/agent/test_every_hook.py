"""For every hook there is a real use in which the kernel, the agent or a shipped plugin emits its event."""

import sys
from socket import socket
from types import SimpleNamespace

import pytest
import sideband_guard_approval.plugin
import sideband_http.plugin
import sideband_shell.plugin
import sideband_skills.plugin
from attrs import frozen
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import HOOK_SPECS, ChatCommands, ClientServer, Compacted, Retry, Route, hookimpl
from sideband.ops import Level, OpError, OpFamily, Scope, op
from sideband.providers import ProviderRefused
from sideband.tools import tool
from sideband_cli._chat._chat_command_table import plugin_chat_commands
from sideband_cli._chat._status_line import plugin_texts
from sideband_scripted import Turn

pytestmark = pytest.mark.anyio

SETTINGS = {
    "agent": {"model": "scripted:test", "compaction": {"keep": 10}, "context_window": 100_000},
    "policy": {"isolation": "none"},
}
ANSWERS = {
    "compaction": lambda event: Compacted("a summary"),
    "model_error": lambda event: Retry(0, "overloaded") if event.model == "scripted:test" else None,
    "routes": lambda event: [Route("ping", "^ping$", lambda request, ctx: "pong")],
}


async def step(agent):
    await agent.invoke("go on")


async def routed_input(agent):
    await agent.invoke("ping")


async def failed_run(agent):
    await agent.select_model("scripted:other")
    await agent.invoke("go on")


async def compaction(agent):
    await agent.invoke("go on")
    await agent.invoke("and on")
    assert await agent.compact()


async def other_sessions(agent):
    await agent.fork()
    await agent.new_session()
    await agent.rewind(None)


async def child(agent):
    await agent.spawn_child("count")


async def settings_of_a_session(agent):
    await agent.select_thinking("high")
    await agent.set_goal("count everything")
    await agent.select_approval_mode("semi")


async def program_of_the_user(agent):
    await agent.run_program(["true"])


async def queued_message(agent):
    agent.steer("in euros")


async def client_with_servers(agent):
    assert await agent.offer_servers([ClientServer("clock", ["/bin/clock"])]) == []


async def approval(agent):
    await agent.select_approval_mode("manual")
    result = await agent.invoke("go on")
    await agent.host.approvals.answer(result.requests[0], Approval("deny"))


async def call_of_a_skill(agent):
    assert await agent.host.call("clock.now") == 1


async def traced_request(agent):
    with socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(OpError, match="cannot connect"):
        await agent.host.op("http.get", {"url": url}, grants=["http:host=127.0.0.1", "trace:host=127.0.0.1"])


async def chat(agent):
    await plugin_chat_commands(agent)
    await plugin_texts(agent)


LONG = "word " * 400
CALL = Turn(tool_calls=[("work", {"text": "x"})])
OVERLOADED = ProviderRefused("scripted", "overloaded", status=529)
REFUSED = ProviderRefused("scripted", "no such model", status=404)
SCENARIOS = [
    (step, [LONG], "agent_start input sections before_agent_start context turn_start tool_selection ephemeral"),
    (step, [LONG], "before_provider_request op_call message_start message_update effect after_provider_response"),
    (step, [LONG], "answer message_end turn_end agent_end save_point settled redactors resources_discover"),
    (step, [CALL, "ok"], "tool_call tool_execution_start tool_execution_update tool_execution_end tool_result"),
    (step, [CALL, "ok"], "tool_progress"),
    (step, [OVERLOADED, "ok"], "model_error retry_start retry_end"),
    (routed_input, [], "routes route_end"),
    (failed_run, [REFUSED], "model_select agent_error"),
    (compaction, [LONG, LONG], "compaction_start compaction session_compact compaction_end"),
    (other_sessions, [], "session_before_fork session_before_switch session_start session_shutdown"),
    (other_sessions, [], "session_before_tree session_tree"),
    (child, ["ok"], "subagent_start subagent_end"),
    (settings_of_a_session, [], "thinking_level_select goal_update approval_mode_select"),
    (program_of_the_user, [], "user_bash"),
    (queued_message, [], "queue_update"),
    (chat, [], "chat_commands status_line"),
    (client_with_servers, [], "client_servers"),
    (approval, [CALL], "approval_start approval_end"),
    (call_of_a_skill, [], "worker_start worker_end"),
    (traced_request, [], "trace_parent"),
]


def emitter():
    """Return the top-level package that emits the event which a function of this module has received."""
    frame = sys._getframe(2)
    while frame.f_globals["__name__"].startswith("sideband.hooks."):
        frame = frame.f_back
    return frame.f_globals["__name__"].partition(".")[0]


def is_shipped(package):
    return package == "sideband" or package.startswith("sideband_")


def everything(emitters):
    """Build a guard that notes who emits each event, and answers some of them."""

    def make(name):
        def listen(event):
            emitters.setdefault(event.hook, set()).add(emitter())
            return ANSWERS.get(name, lambda event: None)(event)

        listen.__name__ = name
        return hookimpl(listen)

    return Plugin(
        "guard", "everything", type("Everything", (), {name: staticmethod(make(name)) for name in HOOK_SPECS})
    )


class Nothing(BaseModel):
    pass


@frozen
class TraceScope(Scope, family="trace"):
    host: str | None = None
    port: str | None = None
    scheme: str | None = None


@op("trace.nothing", level=Level.SAFE)
async def nothing(params: Nothing, ctx) -> None:
    """Do nothing."""


TRACE = Plugin("op", "trace", SimpleNamespace(sideband_ops=lambda: OpFamily("trace", (nothing,), scope=TraceScope)))


@pytest.fixture
def emitters_of(stage, kit, make_skill):
    """Return a function that runs a scenario, and returns the packages that emitted each event."""

    @tool("work", level=Level.CONTROLLED)
    async def work(params: kit.Text, ctx) -> str:
        """Work."""
        await ctx.progress(current=1, total=1, message="done")
        return "worked"

    skill = make_skill("clock", "from sideband.skill import tool\n\n@tool\nasync def now() -> int: return 1\n")

    async def run(scenario, turns):
        emitters = {}
        plugins = [Plugin("tool", "work", work), Plugin("op", "shell", sideband_shell.plugin), everything(emitters)]
        plugins += [Plugin("guard", "approval", sideband_guard_approval.plugin), TRACE]
        plugins += [Plugin("op", "http", sideband_http.plugin), Plugin("loader", "skills", sideband_skills.plugin)]
        async with stage(turns, *plugins, settings=SETTINGS, skill_dirs=[skill.parent]) as agent:
            await scenario(agent)
        return emitters

    return run


@pytest.mark.parametrize(
    ("scenario", "turns", "hooks"), SCENARIOS, ids=[hooks.partition(" ")[0] for *_, hooks in SCENARIOS]
)
async def test_hooks_are_emitted_by_shipped_packages(emitters_of, scenario, turns, hooks):
    emitters = await emitters_of(scenario, list(turns))
    missing = [name for name in hooks.split() if not emitters.get(name)]
    foreign = {name: found for name in hooks.split() for found in emitters.get(name, ()) if not is_shipped(found)}
    assert (missing, foreign) == ([], {})


def test_every_hook_has_a_scenario():
    listed = [name for *_, hooks in SCENARIOS for name in hooks.split()]
    assert sorted(listed) == sorted(HOOK_SPECS)


async def test_event_that_a_test_emits_does_not_count(emitters_of):
    async def cheat(agent):
        await agent.hooks.collect(ChatCommands())

    (found,) = (await emitters_of(cheat, []))["chat_commands"]
    assert not is_shipped(found)
