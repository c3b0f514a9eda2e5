"""Undo: an op plans the steps that revert its effect. Steps are normal effects, and run at most once."""

import pytest
from pydantic import BaseModel
from sideband import hookimpl
from sideband.broker import EffectMissing
from sideband.hooks import Deny
from sideband.ledger import find, verify
from sideband.ops import Level, OpContext, OpFailed, Undo, UndoStep, op

pytestmark = pytest.mark.anyio


class Setting(BaseModel):
    value: int = 0


class Light:
    """A light that ops switch."""

    def __init__(self):
        self.value = 0
        self.broken = False


@pytest.fixture
def light():
    return Light()


@pytest.fixture
def lamp(family, light):
    """Return a plugin with an op that can be undone, one that cannot, and one that only reads."""

    async def undo(recorded, ctx):
        if recorded.status != "done":
            return Undo(remains=(f"it ended as {recorded.status}",))
        before = recorded.note["before"]
        step = UndoStep("lamp.set", {"value": before}, f"set it back to {before}")
        return Undo(steps=(step,), remains=("the light was visible",))

    @op("lamp.set", level=Level.CONTROLLED, record=["value"], undo=undo)
    async def set_lamp(params: Setting, ctx: OpContext) -> int:
        if light.broken:
            raise OpFailed("the lamp is broken")
        await ctx.note({"before": light.value})
        light.value = params.value
        return params.value

    @op("lamp.flash", level=Level.RESTRICTED)
    async def flash(params: Setting, ctx: OpContext) -> None:
        pass

    @op("lamp.read", level=Level.MONITORED)
    async def read(params: Setting, ctx: OpContext) -> int:
        return light.value

    return family("lamp", set_lamp, flash, read)


async def run(host, op, **params):
    """Run an op and return the id of its effect."""
    effects = []
    await host.op(op, params, on_effect=lambda report: effects.append(report.id))
    return effects[-1]


async def test_plan_lists_steps_and_remains_without_changing_anything(make_host, lamp, light):
    async with make_host(lamp) as host:
        plan = await host.plan_undo(await run(host, "lamp.set", value=5))
    assert [(step.op, step.params, step.text) for step in plan.steps] == [
        ("lamp.set", {"value": 0}, "set it back to 0")
    ]
    assert plan.remains == ("the light was visible",)
    assert light.value == 5


async def test_undo_reverts_the_effect_with_a_new_effect(make_host, lamp, light):
    async with make_host(lamp) as host:
        effect = await run(host, "lamp.set", value=5)
        plan = await host.plan_undo(effect)
        reports = []
        (done,) = await host.undo(plan, on_effect=reports.append)
        record = await find(host.ledger.folder, reports[0].id)
        assert (await verify(host.ledger.folder, host.store)).ok
    assert (light.value, done.result, done.error) == (0, 0, None)
    assert (record.op, record.key, record.status) == ("lamp.set", f"undo:{effect}:0", "done")


async def test_undone_effect_is_not_undone_again(make_host, lamp, light):
    async with make_host(lamp) as host:
        effect = await run(host, "lamp.set", value=5)
        first = await host.plan_undo(effect)
        await host.undo(first)
        await run(host, "lamp.set", value=7)
        second = await host.plan_undo(effect)
        assert [step.state for step in second.steps] == ["done"]
        assert await host.undo(second) == []
        # An outdated plan has no effect either.
        await host.undo(first)
    assert light.value == 7


async def test_undo_can_be_undone(make_host, lamp, light):
    async with make_host(lamp) as host:
        reports = []
        await host.undo(await host.plan_undo(await run(host, "lamp.set", value=5)), on_effect=reports.append)
        assert light.value == 0
        await host.undo(await host.plan_undo(reports[0].id))
    assert light.value == 5


async def test_failed_step_has_its_error(make_host, lamp, light):
    async with make_host(lamp) as host:
        plan = await host.plan_undo(await run(host, "lamp.set", value=5))
        light.broken = True
        (outcome,) = await host.undo(plan)
    assert outcome.error.message == "the lamp is broken"


async def test_steps_after_a_failed_one_are_not_run(make_host, family, light):
    async def undo(recorded, ctx):
        steps = [UndoStep("lamp.fail", {}, "first"), UndoStep("lamp.set", {"value": 9}, "second")]
        return Undo(steps=tuple(steps))

    @op("lamp.set", level=Level.CONTROLLED, undo=undo)
    async def set_lamp(params: Setting, ctx: OpContext) -> None:
        light.value = params.value

    @op("lamp.fail", level=Level.CONTROLLED)
    async def fail(params: Setting, ctx: OpContext) -> None:
        raise OpFailed("no")

    async with make_host(family("lamp", set_lamp, fail)) as host:
        plan = await host.plan_undo(await run(host, "lamp.set", value=5))
        assert len(await host.undo(plan)) == 1
    assert light.value == 5


async def test_guards_decide_about_steps(make_host, lamp, hook, light):
    @hookimpl
    async def op_call(event, ctx):
        return Deny("not now") if event.key and event.key.startswith("undo:") else None

    async with make_host(lamp, hook("watch", op_call)) as host:
        (outcome,) = await host.undo(await host.plan_undo(await run(host, "lamp.set", value=5)))
    assert outcome.error.code == "op.denied"
    assert light.value == 5


@pytest.mark.parametrize(
    ("name", "reason"), [("lamp.flash", "does not support undoing lamp.flash"), ("lamp.read", "changes nothing")]
)
async def test_op_without_undo_has_an_empty_plan_with_the_reason(make_host, lamp, name, reason):
    async with make_host(lamp) as host:
        plan = await host.plan_undo(await run(host, name))
    assert plan.steps == ()
    assert reason in plan.remains[0]


async def test_plan_for_a_denied_effect_is_empty(make_host, lamp, hook):
    @hookimpl
    async def op_call(event, ctx):
        return Deny("no")

    async with make_host(lamp, hook("watch", op_call)) as host:
        effects = []
        with pytest.raises(PermissionError):
            await host.op("lamp.set", {}, on_effect=lambda report: effects.append(report.id))
        plan = await host.plan_undo(effects[0])
    assert plan.remains == ("it was denied: nothing happened",)


async def test_plan_for_an_unknown_effect_raises(make_host, lamp):
    async with make_host(lamp) as host:
        with pytest.raises(EffectMissing) as caught:
            await host.plan_undo("nothing-1")
    assert (caught.value.code, caught.value.exit_code) == ("effect.missing", 2)
    assert "audit query" in caught.value.hint


async def test_failing_plan_raises_a_redacted_error_with_its_op(make_host, family):
    async def undo(recorded, ctx):
        raise KeyError("canary-7f3a9c51")

    @op("lamp.set", level=Level.CONTROLLED, undo=undo)
    async def set_lamp(params: Setting, ctx: OpContext) -> None:
        pass

    async with make_host(family("lamp", set_lamp)) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        effect = await run(host, "lamp.set")
        with pytest.raises(OpFailed) as caught:
            await host.plan_undo(effect)
    assert (caught.value.op, caught.value.plugin) == ("lamp.set", "lamp")
    assert "canary-7f3a9c51" not in str(caught.value)


async def test_texts_of_a_plan_are_redacted(make_host, family):
    async def undo(recorded, ctx):
        step = UndoStep("lamp.set", {}, "canary-7f3a9c51 goes back")
        return Undo(steps=(step,), remains=("canary-7f3a9c51 stays",))

    @op("lamp.set", level=Level.CONTROLLED, undo=undo)
    async def set_lamp(params: Setting, ctx: OpContext) -> None:
        pass

    async with make_host(family("lamp", set_lamp)) as host:
        host.redactor.protect("canary-7f3a9c51", "canary")
        plan = await host.plan_undo(await run(host, "lamp.set"))
    assert plan.remains == ("[redacted:canary] stays",)
    assert plan.steps[0].text == "[redacted:canary] goes back"


async def test_effect_is_undone_once_even_by_several_principals(make_host, lamp, light):
    async with make_host(lamp) as host:
        effect = await run(host, "lamp.set", value=5)
        plans = {name: await host.plan_undo(effect, principal=name) for name in ("alice", "bob")}
        assert [step.error for step in await host.undo(plans["alice"], principal="alice")] == [None]
        light.value = 7
        (step,) = await host.undo(plans["bob"], principal="bob")
        assert (step.error.code, light.value) == ("effect.key", 7)
        assert (await host.plan_undo(effect)).open == ()
