from itertools import count

import anyio
import attrs
import pytest
from sideband.hooks import (
    AfterProviderResponse,
    BeforeAgentStart,
    BeforeProviderRequest,
    Context,
    Continue,
    Handled,
    Input,
    Note,
    Patch,
    ToolResult,
    Transform,
)

pytestmark = pytest.mark.anyio

RESULT = ToolResult("c1", "notes.read", {"path": "a"}, "the text")


async def test_each_implementation_sees_earlier_changes(make_hooks, answering):
    hooks = make_hooks(
        normal=[
            ("a", answering("input", lambda event: Transform(event.text + "1"))),
            ("b", answering("input", None)),
            ("c", answering("input", Continue())),
            ("d", answering("input", lambda event: Transform(event.text + "2"))),
        ]
    )
    assert await hooks.update(Input("0", source="api")) == Input("012", source="api")


async def test_text_as_it_arrived_is_known_to_later_implementations(make_hooks, answering):
    hooks = make_hooks(
        normal=[
            ("a", answering("input", lambda event: Transform("/" + event.text))),
            ("b", answering("input", lambda event: Transform(f"{event.text} was {event.typed}"))),
        ]
    )
    assert (await hooks.update(Input("now"))).text == "/now was now"


async def test_answer_may_be_any_awaitable_object(make_hooks):
    class Awaitable:
        def __await__(self):
            yield from anyio.lowlevel.checkpoint().__await__()
            return Transform("later")

    def implementation(event):
        return Awaitable()

    implementation.__name__ = "input"
    assert await make_hooks(normal=[("a", implementation)]).update(Input("now")) == Input("later")


async def test_each_implementation_is_reported_with_its_own_duration(make_hooks, answering, reports, monkeypatch):
    monkeypatch.setattr("sideband.hooks._dispatch.perf_counter", count().__next__)
    implementations = [(name, answering("input", None)) for name in "abc"]
    await make_hooks(normal=implementations, trace=True, deadlines={"input": 100}).update(Input("hi"))
    assert [report.ms for report in reports] == [1000, 1000, 1000]


async def test_first_handled_ends_the_dispatch(make_hooks, answering):
    seen = []
    hooks = make_hooks(
        normal=[
            ("a", answering("input", Transform("changed"))),
            ("b", answering("input", lambda event: Handled(f"got {event.text}"))),
            ("c", answering("input", None, seen)),
        ]
    )
    assert await hooks.update(Input("0")) == Handled("got changed", plugin="b")
    assert seen == []


async def test_failing_implementation_is_skipped_and_reported(make_hooks, answering, failing, reports):
    hooks = make_hooks(
        normal=[("a", failing("input")), ("b", answering("input", lambda event: Transform(event.text + "!")))]
    )
    assert await hooks.update(Input("hi")) == Input("hi!")
    [report] = reports
    assert (report.hook, report.plugin, report.outcome.value) == ("input", "a", "failed")
    assert report.error.code == "hook.failed"
    assert str(report.error) == "plugin `a` failed in `input`: ValueError: boom"
    assert isinstance(report.error.__cause__, ValueError)


async def test_system_prompt_is_replaced(make_hooks, answering):
    hooks = make_hooks(
        normal=[("a", answering("before_agent_start", lambda event: event.system_prompt + " Be brief."))]
    )
    event = await hooks.update(BeforeAgentStart("hi", "You help."))
    assert event == BeforeAgentStart("hi", "You help. Be brief.")


async def test_replaced_messages_are_frozen(make_hooks, answering):
    hooks = make_hooks(normal=[("a", answering("context", [{"role": "user"}]))])
    event = await hooks.update(Context([]))
    assert event.messages == [{"role": "user"}]
    with pytest.raises(TypeError, match="immutable"):
        event.messages.append({})


async def test_requests_and_responses_are_replaced(make_hooks, answering):
    hooks = make_hooks(
        normal=[
            ("a", answering("before_provider_request", lambda event: attrs.evolve(event, model="small"))),
            ("b", answering("after_provider_response", lambda event: attrs.evolve(event, response={"ok": True}))),
        ]
    )
    assert (await hooks.update(BeforeProviderRequest("large", []))).model == "small"
    assert (await hooks.update(AfterProviderResponse("large", {}))).response == {"ok": True}


async def test_patches_are_merged_by_field(make_hooks, answering):
    hooks = make_hooks(
        normal=[
            ("a", answering("tool_result", Patch(content="shorter", note="cut"))),
            ("b", answering("tool_result", Patch(is_error=True))),
            ("c", answering("tool_result", lambda event: Patch(terminate=event.is_error, note="gave up"))),
        ]
    )
    assert await hooks.update(RESULT) == ToolResult(
        "c1",
        "notes.read",
        {"path": "a"},
        "shorter",
        is_error=True,
        terminate=True,
        notes=(Note("a", "cut"), Note("c", "gave up")),
    )


async def test_patch_distinguishes_none_from_omitted_content(make_hooks, answering):
    hooks = make_hooks(normal=[("a", answering("tool_result", Patch(content=None)))])
    assert (await hooks.update(RESULT)).content is None
    hooks = make_hooks(normal=[("a", answering("tool_result", Patch()))])
    assert (await hooks.update(RESULT)).content == "the text"


async def test_failing_guard_withholds_the_result(make_hooks, answering, failing, reports):
    seen = []
    hooks = make_hooks(
        ("a", answering("tool_result", Patch(note="the text has a secret"))),
        ("b", failing("tool_result")),
        normal=[("c", answering("tool_result", Patch(is_error=False), seen))],
    )
    result = await hooks.update(RESULT)
    assert result.withheld_by == "b"
    assert result.is_error
    assert "the text" not in str(attrs.evolve(result, arguments={}))
    assert "`b`" in result.content
    assert "[policy.deny]" in result.content
    assert seen == []
    assert [report.plugin for report in reports] == ["b"]


async def test_guard_with_a_wrong_result_type_withholds_the_result(make_hooks, answering):
    hooks = make_hooks(("a", answering("tool_result", {"content": "safe"})))
    assert (await hooks.update(RESULT)).withheld_by == "a"


async def test_failing_plugin_other_than_a_guard_is_skipped(make_hooks, failing, reports):
    hooks = make_hooks(normal=[("a", failing("tool_result"))], observers=[("b", failing("tool_result"))])
    assert await hooks.update(RESULT) is RESULT
    assert [report.plugin for report in reports] == ["a", "b"]


@pytest.mark.parametrize("answer", [lambda: Patch(is_error="no"), lambda: Patch(terminate=1), lambda: Patch(note=None)])
async def test_invalid_patch_is_a_failure_of_its_plugin(make_hooks, answering, reports, answer):
    hooks = make_hooks(normal=[("a", answering("tool_result", lambda event: answer()))])
    assert await hooks.update(RESULT) is RESULT
    assert [report.plugin for report in reports] == ["a"]


async def test_context_hook_that_returns_a_string_is_reported(make_hooks, answering, reports):
    hooks = make_hooks(normal=[("a", answering("context", "hello"))])
    assert await hooks.update(Context([])) == Context([])
    assert "may return list, tuple" in str(reports[0].error)
