import contextlib
import doctest
import io
from pathlib import Path
from types import FunctionType, SimpleNamespace

import attrs
import pytest
import sideband.hooks as public
from sideband.hooks import (
    HOOK_SPECS,
    AfterProviderResponse,
    AgentEnd,
    AgentError,
    AgentStart,
    Answer,
    ApprovalEnd,
    ApprovalModeSelect,
    ApprovalStart,
    BeforeAgentStart,
    BeforeProviderRequest,
    ChatCommands,
    ClientServer,
    ClientServers,
    CollectEvent,
    Compaction,
    CompactionEnd,
    CompactionStart,
    Context,
    DecideEvent,
    Effect,
    Ephemeral,
    Event,
    Failure,
    FirstEvent,
    GoalUpdate,
    HookRegistry,
    Input,
    Kind,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ModelError,
    ModelSelect,
    ObserveEvent,
    OpCall,
    QueueUpdate,
    Redactors,
    ResourcesDiscover,
    RetryEnd,
    RetryStart,
    RouteEnd,
    Routes,
    SavePoint,
    Sections,
    SessionBeforeFork,
    SessionBeforeSwitch,
    SessionBeforeTree,
    SessionCompact,
    SessionShutdown,
    SessionStart,
    SessionTree,
    Settled,
    StatusLine,
    SubagentEnd,
    SubagentStart,
    ThinkingLevelSelect,
    ToolCall,
    ToolCandidate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ToolProgress,
    ToolResult,
    ToolSelection,
    TraceParent,
    TurnEnd,
    TurnStart,
    UpdateEvent,
    UserBash,
    WorkerEnd,
    WorkerStart,
)
from sideband.ops import Level, Origin

MESSAGE = {"role": "assistant", "content": "hello there"}
ERROR = {"code": "provider.overloaded", "message": "overloaded"}

SAMPLES = [
    Input("ping"),
    Input("hello"),
    BeforeAgentStart("write an invoice", "You help."),
    Context([MESSAGE]),
    Ephemeral([MESSAGE]),
    BeforeProviderRequest("large", [MESSAGE]),
    AfterProviderResponse("large", {"message": MESSAGE, "logprobs": []}),
    ToolCall("c1", "notes.delete", {"path": "a"}),
    ToolCall("c1", "notes.list", {"limit": 1000}),
    OpCall("e1", "http.get", {"url": "x"}, Level.MONITORED, Origin()),
    OpCall("e1", "mail.send", {}, Level.RESTRICTED, Origin(principal="guest")),
    ToolResult("c1", "notes.read", {}, "x" * 5000),
    ToolSelection([ToolCandidate("notes__read", "Read a note.", "plugin notes", 20)], [MESSAGE], tokens=1000),
    Compaction("s1", "e5", [MESSAGE]),
    ModelError("r1", "local:m", {"code": "provider.refused", "status": 503}),
    SessionBeforeSwitch("new"),
    SessionBeforeFork("s1", "e1", "before"),
    SessionBeforeTree("s1", "e1", "e9", "e1", [f"e{number}" for number in range(2, 200)]),
    Sections(),
    Routes("r1", "I am Ada"),
    Answer("r1", "Done -- all of it."),
    Answer("r1", "TODO"),
    ChatCommands(),
    ClientServers([ClientServer("clock", ["/bin/clock"])]),
    StatusLine(),
    Redactors(),
    TraceParent("4bf92f3577b34da6", "http.get", Origin()),
    ResourcesDiscover(Path("/srv")),
    AgentStart("r1"),
    TurnStart("r1", 0),
    TurnEnd("r1", 0, MESSAGE, [MESSAGE]),
    MessageStart(MESSAGE),
    MessageUpdate({"text": "hel"}),
    MessageEnd(MESSAGE),
    ToolExecutionStart("c1", "notes.read", {}),
    ToolExecutionUpdate("c1", "notes.read", 1, 2, "reading"),
    ToolProgress("c1", "notes.read", "stdout", 0, "shell.run", text="reading"),
    ToolExecutionEnd("c1", "notes.read", "text", ms=2000),
    RetryStart(1, 0.5, ERROR),
    RetryEnd(3, success=False),
    RouteEnd("r1", "greeting", "greeter", "matched `I am`", handled=True, ms=1.5),
    AgentError("r1", ERROR),
    AgentEnd("r1", "completed", [MESSAGE]),
    QueueUpdate("steering", "added", ["in euros"], ["in euros"], 1),
    SavePoint("s1", "e9"),
    Settled("s1"),
    CompactionStart("s1", "due", 1000),
    SessionCompact("s1", "e9"),
    CompactionEnd("s1", "completed"),
    SubagentStart("c1", "count", ["notes__read"]),
    SubagentEnd("c1", "failed", error=ERROR),
    SessionStart("s1"),
    SessionShutdown("s1"),
    Effect("e1", "http.get", "denied", Origin()),
    ModelSelect("large", "small"),
    SessionTree("s1", "e1", "e9"),
    ThinkingLevelSelect("high", "low"),
    ApprovalModeSelect("s1", "semi", "plan"),
    UserBash("git status"),
    GoalUpdate("s1", None, "tidy up", "reached"),
    ApprovalStart("4f1d", "effect", "mail.send", Origin()),
    ApprovalEnd("4f1d", "effect", "mail.send", Origin(), verdict="deny"),
    WorkerStart(1, "d", "full", 2_000),
    WorkerEnd(1, "d", "full", "failed", "worker.exited"),
]

DOCUMENTED = {
    Kind.UPDATE: "input before_agent_start context before_provider_request after_provider_response tool_result "
    "tool_selection answer",
    Kind.COLLECT: "ephemeral sections routes chat_commands status_line client_servers redactors "
    "resources_discover trace_parent",
    Kind.DECIDE: "tool_call op_call session_before_switch session_before_fork session_before_tree",
    Kind.FIRST: "compaction model_error",
    Kind.OBSERVE: "agent_start turn_start turn_end message_start message_update message_end tool_execution_start "
    "tool_execution_update tool_progress tool_execution_end retry_start retry_end route_end agent_error agent_end "
    "save_point settled session_compact session_start session_shutdown effect model_select "
    "compaction_start compaction_end subagent_start subagent_end session_tree thinking_level_select "
    "approval_mode_select goal_update user_bash queue_update approval_start approval_end worker_start worker_end",
}
BASES = {
    Kind.UPDATE: UpdateEvent,
    Kind.COLLECT: CollectEvent,
    Kind.DECIDE: DecideEvent,
    Kind.FIRST: FirstEvent,
    Kind.OBSERVE: ObserveEvent,
}


def dispatch(hooks: HookRegistry, event: Event):
    return getattr(hooks, HOOK_SPECS[event.hook].kind.value)(event)


def test_specs_match_the_documented_hooks_and_kinds():
    expected = {name: kind for kind, names in DOCUMENTED.items() for name in names.split()}
    assert {name: spec.kind for name, spec in HOOK_SPECS.items()} == expected


def test_failure_policies_match_the_documentation():
    special = {
        "tool_call": Failure.DENY,
        "op_call": Failure.DENY,
        "tool_result": Failure.WITHHOLD_IF_GUARD,
        "compaction": Failure.NEXT,
        "model_error": Failure.NEXT,
        "session_before_switch": Failure.REPORT,
        "session_before_fork": Failure.REPORT,
        "session_before_tree": Failure.REPORT,
    }
    for name, spec in HOOK_SPECS.items():
        default = Failure.REPORT if spec.kind is Kind.OBSERVE else Failure.SKIP
        assert spec.on_failure is special.get(name, default), name


@pytest.mark.parametrize("spec", HOOK_SPECS.values(), ids=str)
def test_spec_matches_its_event(spec):
    assert spec.event.hook == spec.name
    assert issubclass(spec.event, BASES[spec.kind])
    assert spec.deadline > 0


@pytest.mark.parametrize("spec", HOOK_SPECS.values(), ids=str)
def test_every_field_of_an_event_is_documented(spec):
    for field in attrs.fields(spec.event):
        assert f"{field.name}: " in (spec.event.__doc__ or ""), field.name


def test_every_event_has_a_sample():
    assert {event.hook for event in SAMPLES} == set(HOOK_SPECS)


def test_public_names_are_sorted_and_documented():
    assert public.__all__ == sorted(public.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    for name in public.__all__:
        value = getattr(public, name)
        assert value.__doc__ or not isinstance(value, type | FunctionType), name


@pytest.mark.anyio
@pytest.mark.parametrize("spec", HOOK_SPECS.values(), ids=str)
async def test_example_of_each_hook_works_as_a_plugin(spec, reports):
    names: dict = {}
    example = doctest.DocTestParser().get_doctest(spec.doc, names, spec.name, None, None)
    runner = doctest.DocTestRunner()
    problems = io.StringIO()
    runner.run(example, out=problems.write, clear_globs=False)
    assert example.examples
    assert runner.summarize(verbose=False).failed == 0, problems.getvalue()

    hooks = HookRegistry(report=reports.append, trace=True)
    hooks.register("example", SimpleNamespace(**{spec.name: example.globs[spec.name]}))
    with contextlib.redirect_stdout(io.StringIO()):
        for event in SAMPLES:
            if event.hook == spec.name:
                await dispatch(hooks, event)
    assert reports
    assert [report.error for report in reports if report.error] == []


@pytest.mark.anyio
@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.hook)
async def test_event_without_implementations_has_a_neutral_outcome(event, reports):
    outcome = await dispatch(HookRegistry(report=reports.append), event)
    match HOOK_SPECS[event.hook].kind:
        case Kind.UPDATE:
            assert outcome is event
        case Kind.DECIDE:
            assert outcome.allowed
            assert outcome.arguments == event.final_arguments
        case Kind.COLLECT:
            assert outcome == ()
        case _:
            assert outcome is None
    assert reports == []


@pytest.mark.anyio
@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.hook)
async def test_answer_of_an_unknown_type_is_a_failure_of_its_plugin(event, reports, make_hooks):
    class Stray:
        pass

    def implementation(event):
        return Stray()

    implementation.__name__ = event.hook
    hooks = make_hooks(normal=[("stray", implementation)])
    await dispatch(hooks, event)
    [report] = reports
    assert report.plugin == "stray"
    assert report.error.code == "hook.result"
    assert "returned Stray, but may return" in report.error.message


def test_payload_is_immutable():
    event = ToolCall("c1", "notes.list", {"path": "a", "tags": ["x"], "deep": {"k": 1}})
    for change in (
        lambda: event.arguments.__setitem__("path", "b"),
        lambda: event.arguments.update(path="b"),
        lambda: event.arguments.pop("path"),
        lambda: event.arguments["tags"].append("y"),
        event.arguments["deep"].clear,
    ):
        with pytest.raises(TypeError, match="immutable"):
            change()
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.tool = "other"


def test_payload_is_a_copy():
    arguments = {"tags": ["x"]}
    event = ToolCall("c1", "notes.list", arguments)
    arguments["tags"].append("y")
    assert event.arguments == {"tags": ["x"]}


def test_payload_serializes_copies_and_compares_like_plain_data():
    import copy
    import json
    import pickle

    plain = {"tags": ["x", {"k": None}], "n": 1}
    frozen = ToolCall("c1", "notes.list", plain).arguments
    assert frozen == plain
    assert json.loads(json.dumps(frozen)) == plain
    assert type(copy.deepcopy(frozen)) is dict
    assert type(copy.deepcopy(frozen)["tags"]) is list
    assert pickle.loads(pickle.dumps(frozen)) == plain
    assert type(public.thaw(frozen)["tags"][1]) is dict
