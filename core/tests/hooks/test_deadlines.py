import time

import anyio
import pytest
from anyio import CancelScope, get_cancelled_exc_class, sleep_forever
from sideband.hooks import (
    Allow,
    Context,
    Deny,
    HookOutcome,
    Patch,
    Settled,
    ToolCall,
    ToolResult,
    Verdict,
)

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])]

CALL = ToolCall("c1", "notes.list", {})
RESULT = ToolResult("c1", "notes.read", {}, "the text")


@pytest.fixture
def hanging():
    def make(hook):
        async def implementation(event):
            await sleep_forever()

        implementation.__name__ = hook
        return implementation

    return make


def outcomes(reports):
    return [(report.plugin, report.outcome) for report in reports]


async def test_hanging_implementation_denies_and_is_named(make_hooks, answering, hanging, reports):
    hooks = make_hooks(
        ("a", answering("tool_call", Allow())),
        ("b", hanging("tool_call")),
        ("c", answering("tool_call", Deny("no"))),
        deadlines={"tool_call": 0.02},
    )
    decision = await hooks.decide(CALL)
    assert decision.verdict is Verdict.DENY
    assert decision.plugin == "b"
    assert decision.error.code == "hook.timeout"
    assert "plugin `b` exceeded the deadline of `tool_call` (0.02 s)" in decision.reason
    assert outcomes(reports) == [("b", HookOutcome.TIMEOUT), ("c", HookOutcome.NOT_REACHED)]


async def test_deadline_is_shared_by_all_implementations(make_hooks, reports):
    async def tool_call(event):
        await anyio.sleep(0.9)

    hooks = make_hooks(("a", tool_call), ("b", tool_call), deadlines={"tool_call": 1.5})
    assert not (await hooks.decide(CALL)).allowed
    assert outcomes(reports) == [("b", HookOutcome.TIMEOUT)]


async def test_hanging_guard_withholds_the_result(make_hooks, answering, hanging):
    hooks = make_hooks(
        ("a", hanging("tool_result")),
        normal=[("b", answering("tool_result", Patch(content="b")))],
        deadlines={"tool_result": 0.02},
    )
    result = await hooks.update(RESULT)
    assert result.withheld_by == "a"
    assert "the text" not in result.content


async def test_hanging_plugin_does_not_withhold_the_result(make_hooks, answering, hanging):
    hooks = make_hooks(
        ("a", answering("tool_result", Patch(note="checked"))),
        normal=[("b", hanging("tool_result"))],
        deadlines={"tool_result": 0.02},
    )
    result = await hooks.update(RESULT)
    assert result.content == "the text"
    assert len(result.notes) == 1


async def test_blocking_code_times_out_when_it_returns(make_hooks, answering, reports):
    def tool_call(event):
        time.sleep(0.03)
        return Allow("too late")

    seen = []
    hooks = make_hooks(("a", tool_call), ("b", answering("tool_call", None, seen)), deadlines={"tool_call": 0.01})
    decision = await hooks.decide(CALL)
    assert decision.verdict is Verdict.DENY
    assert decision.plugin == "a"
    assert seen == []
    assert outcomes(reports) == [("a", HookOutcome.TIMEOUT), ("b", HookOutcome.NOT_REACHED)]


async def test_blocking_code_that_exceeds_the_deadline_ends_the_dispatch(make_hooks, answering, reports):
    def settled(event):
        time.sleep(0.03)

    seen = []
    hooks = make_hooks(normal=[("a", settled), ("b", answering("settled", None, seen))], deadlines={"settled": 0.01})
    await hooks.observe(Settled("s1"))
    assert seen == []
    assert outcomes(reports) == [("a", HookOutcome.TIMEOUT), ("b", HookOutcome.NOT_REACHED)]


@pytest.mark.parametrize("how", ["returns", "raises"])
async def test_swallowed_cancellation_is_still_a_timeout(make_hooks, reports, how):
    async def tool_call(event):
        try:
            await sleep_forever()
        except get_cancelled_exc_class():
            if how == "raises":
                raise RuntimeError("hidden") from None
        return Allow()

    hooks = make_hooks(("a", tool_call), deadlines={"tool_call": 0.02})
    decision = await hooks.decide(CALL)
    assert decision.verdict is Verdict.DENY
    assert decision.error.code == "hook.timeout"
    assert outcomes(reports) == [("a", HookOutcome.TIMEOUT)]


async def test_outer_cancellation_propagates_without_reports(make_hooks, reports):
    scope = CancelScope()
    reached = []

    async def tool_call(event):
        scope.cancel()
        await sleep_forever()

    hooks = make_hooks(("a", tool_call))
    with scope:
        await hooks.decide(CALL)
        reached.append("after")
    assert scope.cancelled_caught
    assert reached == []
    assert reports == []


async def test_outer_deadline_is_not_a_hook_timeout(make_hooks, hanging, reports):
    hooks = make_hooks(("a", hanging("tool_call")))
    with anyio.move_on_after(0.02) as scope:
        await hooks.decide(CALL)
    assert scope.cancelled_caught
    assert reports == []


async def test_interrupt_propagates(make_hooks, failing, reports):
    hooks = make_hooks(normal=[("a", failing("settled", KeyboardInterrupt()))])
    with pytest.raises(KeyboardInterrupt):
        await hooks.observe(Settled("s1"))
    assert reports == []


async def test_exception_group_is_a_failure_of_the_plugin(make_hooks, reports):
    async def context(event):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)

    async def fail():
        raise ValueError("inside")

    hooks = make_hooks(normal=[("a", context)])
    assert await hooks.update(Context([])) == Context([])
    assert outcomes(reports) == [("a", HookOutcome.FAILED)]


async def test_registration_does_not_affect_a_running_dispatch(make_hooks, answering):
    from types import SimpleNamespace

    from sideband.hooks import hookimpl

    hooks = make_hooks()

    async def tool_call(event):
        hooks.unregister("b")
        hooks.register("c", SimpleNamespace(tool_call=hookimpl(lambda event: Deny("new"))))

    hooks.register("a", SimpleNamespace(tool_call=hookimpl(tool_call)))
    hooks.register("b", SimpleNamespace(tool_call=hookimpl(answering("tool_call", Allow("still called")))))
    decision = await hooks.decide(CALL)
    assert decision.allowed
    assert [note.plugin for note in decision.notes] == ["b"]
    assert (await hooks.update(RESULT)) is RESULT
    assert (await make_hooks().decide(CALL)).allowed
