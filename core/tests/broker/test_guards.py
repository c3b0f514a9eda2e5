"""Guards: their decisions are enforced, and a failing guard denies."""

from types import SimpleNamespace

import anyio
import attrs
import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.approvals import Approval, ApprovalNeeded
from sideband.hooks import Allow, Ask, Deny, Replace
from sideband.ops import Level, OpContext, OpDenied, Scope, op

pytestmark = pytest.mark.anyio

both_backends = pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])


class Number(BaseModel):
    n: int


@attrs.frozen
class CountScope(Scope, family="count"):
    n: str | None = None


@op("count.up", requires="count", scope=lambda params: CountScope(n=str(params.n)), level=Level.SAFE, record=["n"])
async def up(params: Number, ctx: OpContext) -> int:
    return params.n + 1


@pytest.fixture
def count(family):
    return family("count", up, scope=CountScope)


async def test_denied_effect_is_recorded_with_the_guard(make_host, count, hook, outcomes):
    @hookimpl
    def op_call(event):
        return Deny("not today")

    async with make_host(count, hook("strict", op_call)) as host:
        with pytest.raises(OpDenied, match=r"^count\.up was denied by `strict`: not today$") as caught:
            await host.op("count.up", {"n": 1})
    assert caught.value.plugin == "strict"
    assert outcomes()[0]["status"] == "denied"
    assert outcomes()[0]["decisions"] == [{"plugin": "strict", "said": "deny", "note": "not today"}]


async def test_failing_guard_denies_and_is_named(make_host, count, hook):
    @hookimpl
    async def op_call(event):
        raise RuntimeError("broken")

    async with make_host(count, hook("broken-guard", op_call)) as host:
        with pytest.raises(OpDenied, match="broken-guard"):
            await host.op("count.up", {"n": 1})


async def test_guard_with_an_invalid_answer_denies(make_host, count, hook):
    @hookimpl
    def op_call(event):
        return "fine by me"

    async with make_host(count, hook("typo", op_call)) as host:
        with pytest.raises(OpDenied, match="typo"):
            await host.op("count.up", {"n": 1})


async def test_replaced_parameters_are_used_and_recorded(make_host, count, hook, ledger_lines):
    @hookimpl
    def op_call(event):
        return Replace({"n": 41}) if event.params["n"] != 41 else None

    async with make_host(count, hook("fixer", op_call)) as host:
        assert await host.op("count.up", {"n": 1}) == 42
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["params"] == {"n": 41}


async def test_replaced_parameters_are_validated_again(make_host, count, hook):
    @hookimpl
    def op_call(event):
        return Replace({"n": "many"})

    async with make_host(count, hook("fixer", op_call)) as host:
        with pytest.raises(OpDenied, match=r"fixer.*`n`: expected an integer"):
            await host.op("count.up", {"n": 1})


async def test_replaced_parameters_pass_the_gate_again(make_host, count, hook):
    @hookimpl
    def op_call(event):
        return Replace({"n": 2}) if event.params["n"] == 1 else None

    async with make_host(count, hook("fixer", op_call)) as host:
        with pytest.raises(OpDenied, match="`count:n=2` is not granted"):
            await host.op("count.up", {"n": 1}, grants=["count:n=1"])


async def test_question_without_an_approver_denies(make_host, count, hook):
    @hookimpl
    def op_call(event):
        return Ask("Really?")

    async with make_host(count, hook("asker", op_call)) as host:
        with pytest.raises(
            ApprovalNeeded, match=r"it needs approval, and no approver is available: Really\?"
        ) as caught:
            await host.op("count.up", {"n": 1})
    assert caught.value.message.startswith("count.up was denied by `asker`: ")


@pytest.mark.parametrize("answer", [True, False])
async def test_answer_of_the_approver_decides(make_host, count, hook, answer):
    @hookimpl
    def op_call(event):
        return Ask("Really?")

    asked = []

    async def approver(request):
        asked.append((request.question, request.subject))
        return Approval("allow" if answer else "deny")

    async with make_host(count, hook("asker", op_call), approver=approver) as host:
        if answer:
            assert await host.op("count.up", {"n": 1}) == 2
        else:
            with pytest.raises(OpDenied):
                await host.op("count.up", {"n": 1})
    assert asked == [("Really?", "count.up")]


async def test_note_of_a_guard_is_recorded_with_the_effect(make_host, count, hook, ledger_lines):
    @hookimpl
    def op_call(event):
        return Allow("looked at it")

    async with make_host(count, hook("watcher", op_call)) as host:
        await host.op("count.up", {"n": 1})
    (intent,) = [line for line in ledger_lines() if line["kind"] == "intent"]
    assert intent["decisions"] == [{"plugin": "watcher", "said": "allow", "note": "looked at it"}]


async def test_effect_is_observed_once_with_its_recorded_parameters(make_host, count, hook):
    seen = []

    @hookimpl
    async def effect(event):
        seen.append(event)

    async with make_host(count, hook("observer", effect)) as host:
        await host.op("count.up", {"n": 1})
        with pytest.raises(OpDenied):
            await host.op("count.up", {"n": 1}, grants=[])
    assert [(one.op, one.status) for one in seen] == [("count.up", "done"), ("count.up", "denied")]
    assert dict(seen[0].params) == {"n": 1}


async def test_failing_observer_does_not_affect_the_effect(make_host, count, hook):
    @hookimpl
    async def effect(event):
        raise RuntimeError("broken")

    async with make_host(count, hook("observer", effect)) as host:
        assert await host.op("count.up", {"n": 1}) == 2


@both_backends
async def test_hanging_guard_denies_at_its_deadline(make_host, count, hook):
    @hookimpl
    async def op_call(event):
        await anyio.sleep_forever()

    settings = {"policy": {"deadlines": {"op_call": 0.05}}}
    async with make_host(count, hook("sleepy", op_call), settings=settings) as host:
        with pytest.raises(OpDenied, match="sleepy"):
            await host.op("count.up", {"n": 1})


async def test_recursive_guard_denies_at_the_nesting_limit(make_host, count, hook):
    @hookimpl
    async def op_call(event, ctx):
        await ctx.dispatch("count.up", {"n": 1})

    async with make_host(count, hook("circular", op_call)) as host:
        with pytest.raises(OpDenied, match="circular"):
            await host.op("count.up", {"n": 1})


async def test_failing_guard_denies_and_the_hint_has_a_remedy(make_host, count, hook):
    @hookimpl
    def op_call(event):
        raise ValueError("boom")

    async with make_host(count, hook("fragile", op_call)) as host:
        with pytest.raises(OpDenied, match=r"`fragile` failed") as caught:
            await host.op("count.up", {"n": 1})
    assert "add `fragile` to `[policy.deny]`" in caught.value.hint
    assert ". " not in caught.value.message


async def test_broken_guard_denies_and_the_message_has_a_remedy(make_host, count):
    broken = Plugin(kind="guard", name="guard-broken", value=SimpleNamespace())
    async with make_host(count, broken) as host:
        with pytest.raises(OpDenied, match=r"`guard-broken`.*\[policy.deny\]"):
            await host.op("count.up", {"n": 1})


async def test_broken_guard_denied_by_the_policy_is_ignored(make_host, count):
    broken = Plugin(kind="guard", name="guard-broken", value=SimpleNamespace())
    settings = {"policy": {"deny": {"guard.guard-broken": "known to be broken"}}}
    async with make_host(count, broken, settings=settings) as host:
        assert await host.op("count.up", {"n": 1}) == 2


async def test_effect_below_the_level_of_all_guards_costs_nothing(make_host, count, family, monkeypatch):
    @op("danger.do", level=Level.CONTROLLED)
    async def do(params: Number, ctx: OpContext) -> None: ...

    class Guard:
        @hookimpl(level=Level.CONTROLLED)
        def op_call(self, event):
            return Deny("too dangerous")

    async with make_host(count, family("danger", do), Plugin("guard", "levels", Guard)) as host:
        with pytest.raises(OpDenied, match="too dangerous"):
            await host.op("danger.do", {"n": 1})
        monkeypatch.setattr("sideband.broker._broker.OpCall", None)  # no event can be made
        assert await host.op("count.up", {"n": 1}) == 2
