import anyio
import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sideband.hooks import (
    Allow,
    Ask,
    Cancel,
    Decision,
    Deny,
    HookRegistry,
    Note,
    OpCall,
    Phase,
    Replace,
    SessionBeforeFork,
    SessionBeforeSwitch,
    ToolCall,
    Verdict,
    hookimpl,
)
from sideband.ops import Level, Origin

CALL = ToolCall("c1", "notes.list", {"path": "a"})
OP_CALL = OpCall("e1", "http.get", {"url": "a"}, Level.MONITORED, Origin())


@pytest.mark.anyio
async def test_allow_collects_notes(make_hooks, answering):
    hooks = make_hooks(
        ("a", answering("tool_call", Allow("seen before"))),
        ("b", answering("tool_call", None)),
        ("c", answering("tool_call", Allow())),
    )
    assert await hooks.decide(CALL) == Decision(
        Verdict.ALLOW, arguments={"path": "a"}, notes=(Note("a", "seen before"),)
    )


@pytest.mark.anyio
async def test_first_deny_wins_and_ends_the_dispatch(make_hooks, answering):
    seen = []
    hooks = make_hooks(
        ("a", answering("op_call", Ask("May I?"))),
        ("b", answering("op_call", Deny("not allowed", halt=True))),
        ("c", answering("op_call", Deny("too late"), seen)),
    )
    decision = await hooks.decide(OP_CALL)
    assert (decision.verdict, decision.plugin, decision.reason) == (Verdict.DENY, "b", "not allowed")
    assert decision.halt
    assert decision.questions == ()
    assert seen == []


@pytest.mark.anyio
async def test_ask_takes_precedence_over_allow(make_hooks, answering):
    hooks = make_hooks(
        ("a", answering("tool_call", Allow("fine"))),
        ("b", answering("tool_call", Ask("Sure?"))),
        ("c", answering("tool_call", Allow())),
        ("d", answering("tool_call", Ask("Really?"))),
    )
    decision = await hooks.decide(CALL)
    assert decision.verdict is Verdict.ASK
    assert not decision.allowed
    assert decision.questions == (Note("b", "Sure?"), Note("d", "Really?"))
    assert decision.question == "Sure? Really?"
    assert decision.plugin == "b"
    assert decision.notes == (Note("a", "fine"),)


@pytest.mark.anyio
async def test_later_implementations_see_replaced_arguments(make_hooks, answering):
    seen = []
    hooks = make_hooks(
        ("a", answering("op_call", Replace({"url": "b"}))),
        ("b", answering("op_call", None, seen)),
    )
    decision = await hooks.decide(OP_CALL)
    assert decision.allowed
    assert decision.arguments == {"url": "b"}
    assert decision.replaced_by == ("a",)
    assert [event.params for event in seen] == [{"url": "b"}]


@pytest.mark.anyio
async def test_earlier_implementations_are_called_again_with_replaced_arguments(make_hooks, answering):
    hooks = make_hooks(
        ("a", answering("op_call", lambda event: Deny("not b") if event.params["url"] == "b" else Allow("fine"))),
        ("b", answering("op_call", Replace({"url": "b"}))),
    )
    decision = await hooks.decide(OP_CALL)
    assert (decision.verdict, decision.plugin, decision.reason) == (Verdict.DENY, "a", "not b")
    assert decision.notes == ()


@pytest.mark.anyio
async def test_answers_to_replaced_arguments_are_discarded(make_hooks, answering):
    hooks = make_hooks(
        ("a", answering("op_call", lambda event: Ask("Is a fine?") if event.params["url"] == "a" else None)),
        ("b", answering("op_call", lambda event: Allow("a is fine") if event.params["url"] == "a" else None)),
        ("c", answering("op_call", Replace({"url": "b"}))),
    )
    decision = await hooks.decide(OP_CALL)
    assert decision.allowed
    assert decision.questions == decision.notes == ()


@pytest.mark.anyio
async def test_replace_with_equal_arguments_is_an_allow(make_hooks, answering):
    seen = []
    hooks = make_hooks(
        ("a", answering("op_call", None, seen)),
        ("b", answering("op_call", lambda event: Replace(dict(event.params)))),
    )
    decision = await hooks.decide(OP_CALL)
    assert decision.replaced_by == ()
    assert len(seen) == 1


@pytest.mark.anyio
async def test_replacing_1_by_true_counts_as_a_change(make_hooks, answering):
    hooks = make_hooks(("a", answering("op_call", Replace({"url": True, "list": [1.0]}))))
    event = OpCall("e1", "http.get", {"url": 1, "list": [1]}, Level.SAFE, Origin())
    decision = await hooks.decide(event)
    assert decision.arguments["url"] is True
    assert type(decision.arguments["list"][0]) is float


@pytest.mark.anyio
async def test_replacing_plugin_is_not_called_with_its_own_arguments(make_hooks, answering):
    hooks = make_hooks(("a", answering("op_call", lambda event: Replace({"url": event.params["url"] + "!"}))))
    decision = await hooks.decide(OP_CALL)
    assert decision.allowed
    assert decision.arguments == {"url": "a!"}


@pytest.mark.anyio
async def test_endless_replacements_are_denied(make_hooks, answering):
    seen = []
    hooks = make_hooks(
        ("a", answering("op_call", Replace({"url": "a"}), seen)),
        ("b", answering("op_call", Replace({"url": "b"}), seen)),
    )
    decision = await hooks.decide(OP_CALL)
    assert len(seen) < 20
    assert decision.verdict is Verdict.DENY
    assert "`a`, `b` keep replacing" in decision.reason


@pytest.mark.anyio
async def test_replaced_arguments_are_validated_and_converted(make_hooks, answering):
    seen = []
    hooks = make_hooks(
        ("a", answering("op_call", Replace({"limit": "10"}))),
        ("b", answering("op_call", None, seen)),
    )
    decision = await hooks.decide(OP_CALL, validate=lambda arguments: {"limit": int(arguments["limit"])})
    assert decision.arguments == {"limit": 10}
    assert seen[0].params == {"limit": 10}


@pytest.mark.anyio
async def test_invalid_replacement_is_a_failure_of_its_plugin(make_hooks, answering, reports):
    def validate(arguments):
        raise ValueError("unknown parameter: depth")

    hooks = make_hooks(("a", answering("op_call", Replace({"depth": 1}))))
    decision = await hooks.decide(OP_CALL, validate=validate)
    assert decision.verdict is Verdict.DENY
    assert decision.plugin == "a"
    assert "unknown parameter: depth" in decision.reason
    assert [report.plugin for report in reports] == ["a"]


@pytest.mark.anyio
@pytest.mark.parametrize("event", [CALL, OP_CALL], ids=["tool_call", "op_call"])
@pytest.mark.parametrize("phase", Phase)
async def test_failing_implementation_denies_with_a_remedy(failing, reports, event, phase):
    from types import SimpleNamespace

    hooks = HookRegistry(report=reports.append)
    hooks.register("guard-x", SimpleNamespace(**{event.hook: hookimpl(failing(event.hook))}), phase=phase)
    decision = await hooks.decide(event)
    assert decision.verdict is Verdict.DENY
    assert decision.plugin == "guard-x"
    assert "plugin `guard-x` failed" in decision.reason
    assert "ValueError: boom" in decision.reason
    assert "add `guard-x` to `[policy.deny]`" in decision.error.hint
    assert decision.error.code == "hook.failed"
    assert [report.plugin for report in reports] == ["guard-x"]


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [True, False, "deny", {"block": True}, Cancel("no"), Deny])
async def test_answer_of_a_wrong_type_denies(make_hooks, answering, answer):
    def implementation(event):
        return answer

    implementation.__name__ = "tool_call"
    decision = await make_hooks(("a", implementation)).decide(CALL)
    assert decision.verdict is Verdict.DENY
    assert decision.error.code == "hook.result"


@pytest.mark.anyio
async def test_awaitable_returned_by_a_plain_function_is_awaited(make_hooks):
    async def later():
        return Deny("after all")

    def tool_call(event):
        return later()

    assert (await make_hooks(("a", tool_call)).decide(CALL)).reason == "after all"


@pytest.mark.anyio
@pytest.mark.parametrize("event", [SessionBeforeSwitch("new"), SessionBeforeFork("s1", "e1")])
async def test_session_change_can_be_cancelled(make_hooks, answering, event):
    decision = await make_hooks(normal=[("a", answering(event.hook, Cancel("not saved")))]).decide(event)
    assert (decision.verdict, decision.plugin, decision.reason) == (Verdict.DENY, "a", "not saved")
    assert decision.arguments is None


@pytest.mark.anyio
@pytest.mark.parametrize("event", [SessionBeforeSwitch("new"), SessionBeforeFork("s1", "e1")])
async def test_failing_plugin_does_not_prevent_a_session_change(make_hooks, answering, failing, reports, event):
    hooks = make_hooks(normal=[("a", failing(event.hook)), ("b", answering(event.hook, Allow()))])
    assert (await hooks.decide(event)).allowed
    assert [report.error.code for report in reports] == ["hook.failed", "hook.result"]


ANSWERS = st.one_of(
    st.sampled_from([None, Allow("ok"), Ask("?"), Deny("no"), "wrong type"]),
    st.integers(0, 3).map(lambda value: Replace({"n": value})),
)
GUARDS = st.lists(st.lists(ANSWERS, min_size=4, max_size=4), min_size=1, max_size=4)


@settings(deadline=None)
@given(GUARDS)
def test_allowed_arguments_were_seen_by_every_guard(rules):
    """Each guard is a table from the argument, 0 to 3, to its answer."""
    hooks = HookRegistry(report=lambda report: None)
    last: dict[int, tuple[int, object]] = {}

    for number, table in enumerate(rules):

        class Guard:
            def __init__(self, number, table):
                self.number, self.table = number, table

            @hookimpl
            def tool_call(self, event):
                answer = self.table[event.arguments["n"]]
                last[self.number] = event.arguments["n"], answer
                return answer

        hooks.register(f"g{number}", Guard(number, table), phase=Phase.GUARD)

    decision = anyio.run(hooks.decide, ToolCall("c1", "t.t", {"n": 0}))
    final = decision.arguments["n"]
    if decision.verdict is Verdict.DENY:
        denied = any(isinstance(answer, Deny | str) for _, answer in last.values())
        assert denied or "keep replacing" in decision.reason
        return
    assert len(last) == len(rules)
    for seen, answer in last.values():
        assert not isinstance(answer, Deny | str)
        assert seen == final or answer == Replace({"n": final})
    asked = {f"g{number}" for number, (_, answer) in last.items() if isinstance(answer, Ask)}
    assert {note.plugin for note in decision.questions} == asked
    assert (decision.verdict is Verdict.ASK) == bool(asked)


@pytest.mark.anyio
async def test_answers_are_kept_in_chronological_order(make_hooks, answering):
    hooks = make_hooks(
        ("a", answering("tool_call", Ask("Sure?"))),
        ("b", answering("tool_call", None)),
        ("c", answering("tool_call", Allow("seen before"))),
        ("d", answering("tool_call", Deny("no"))),
    )
    said = (await hooks.decide(CALL)).said
    assert [(one.plugin, one.answer, one.text) for one in said] == [
        ("a", "ask", "Sure?"),
        ("c", "allow", "seen before"),
        ("d", "deny", "no"),
    ]


@pytest.mark.anyio
async def test_answers_to_replaced_arguments_are_not_kept(make_hooks, answering):
    hooks = make_hooks(
        ("a", answering("tool_call", lambda event: Ask(f"List {event.arguments['path']}?"))),
        ("b", answering("tool_call", Replace({"path": "b"}))),
    )
    decision = await hooks.decide(CALL)
    assert [(one.plugin, one.answer, one.text) for one in decision.said] == [
        ("b", "replace", ""),
        ("a", "ask", "List b?"),
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("event", [OP_CALL, CALL])
@pytest.mark.parametrize("level", list(Level))
async def test_implementation_with_a_level_is_not_asked_about_a_lower_one(make_hooks, answering, event, level):
    hooks = make_hooks(
        ("a", hookimpl(answering(event.hook, Allow("seen")))),
        ("b", hookimpl(level=level)(answering(event.hook, Deny("no")))),
    )
    decision = await hooks.decide(event)
    assert (decision.verdict is Verdict.DENY) == (level <= event.level)
    assert decision.notes == (Note("a", "seen"),)


@pytest.mark.anyio
async def test_implementation_with_a_level_is_asked_about_arguments_that_reach_it(make_hooks, answering):
    seen = []
    replace = answering("op_call", lambda event: Replace({"url": "b"}) if event.params["url"] == "a" else None)
    hooks = make_hooks(
        ("a", hookimpl(level=Level.RESTRICTED)(answering("op_call", None, seen))),
        ("b", replace),
        ("c", hookimpl(level=Level.PRIVILEGED)(answering("op_call", Deny("no")))),
    )
    await hooks.decide(OP_CALL)
    assert seen == []
    event = attrs.evolve(OP_CALL, level_of=lambda params: Level.RESTRICTED)
    assert (await hooks.decide(event)).verdict is Verdict.ALLOW
    assert [(one.params["url"], one.level) for one in seen] == [("b", Level.RESTRICTED)]


@pytest.mark.anyio
async def test_registry_knows_from_which_level_on_any_implementation_is_asked(make_hooks, answering):
    hooks = make_hooks(("a", hookimpl(level=Level.CONTROLLED)(answering("op_call", None))))
    assert [hooks.has("op_call", level) for level in Level] == [False, False, True, True, True]
    assert hooks.has("op_call")
    assert not hooks.has("tool_call", Level.PRIVILEGED)
