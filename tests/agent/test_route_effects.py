"""Effects of routes are those of a run: they have keys, wait for approvals, and happen once, also through kill -9."""

from types import SimpleNamespace

import anyio
import pytest
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval
from sideband.hooks import Ask, Route, hookimpl
from sideband.ledger import query
from sideband.ops import ContextRevoked, Level, OpFamily, op
from sideband_agent.sessions import RouteEntry

pytestmark = pytest.mark.anyio


def routing(handle, match="", **others):
    """Build a plugin whose route `pay` calls this handler, and with implementations of other hooks."""
    functions = {"routes": lambda event: [Route("pay", match, handle)], **others}
    for hook, function in functions.items():
        function.__name__ = hook
    return Plugin("hook", "greeter", SimpleNamespace(**{hook: hookimpl(one) for hook, one in functions.items()}))


def entries(agent):
    return [(one.name, one.status) for one in agent.session.path() if isinstance(one, RouteEntry)]


class Mark(BaseModel):
    mark: str = ""


def shop(paid):
    @op("till.pay", level=Level.CONTROLLED, record=["mark"])
    async def pay(params: Mark, ctx) -> str:
        """Pay."""
        paid.append(params.mark)
        return f"receipt {len(paid)}"

    return Plugin("op", "till", SimpleNamespace(sideband_ops=lambda: OpFamily("till", (pay,))))


async def test_model_learns_of_the_effects_of_a_handler_that_failed(stage):
    async def handle(request, ctx):
        await ctx.dispatch("till.pay", {"mark": "x"})
        raise ValueError("out of paper")

    prompts = []
    plugin = routing(handle, before_agent_start=lambda event: prompts.append(event.prompt))
    async with stage(["I see"], shop([]), plugin) as agent:
        await agent.invoke("pay")
        (request,) = agent.scripted.requests
    assert prompts == ["pay"]
    assert request.messages[0].text == "pay"
    assert "The route `pay` began to handle this input" in request.messages[1].text
    assert "till.pay, effect" in request.messages[1].text
    assert request.messages[1].source == "greeter"


async def test_effects_of_a_handler_have_keys_of_its_run_and_route(stage):
    async def handle(request, ctx):
        return await ctx.dispatch("till.pay", {"mark": "x"})

    async with stage([], shop([]), routing(handle)) as agent:
        result = await agent.invoke("pay")
        keys = [one.key for one in await query(agent.host.ledger.folder, op="till.pay")]
        assert keys[0].startswith(f"{agent.session.id}:{result.run}:route.greeter.pay:till.pay:")


async def test_context_of_a_handler_ends_with_it(stage):
    kept = []

    def handle(request, ctx):
        kept.append(ctx)
        return "done"

    async with stage([], shop([]), routing(handle)) as agent:
        await agent.invoke("pay")
        with pytest.raises(ContextRevoked):
            await kept[0].dispatch("till.pay", {"mark": "late"})


async def test_run_waits_for_an_approval_that_a_handler_needs_and_then_continues(stage, kit):
    paid = []

    async def handle(request, ctx):
        await ctx.dispatch("till.pay", {"mark": "first"})
        return await ctx.dispatch("till.pay", {"mark": "second"})

    def op_call(event):
        return Ask("Pay again?") if event.params.get("mark") == "second" else None

    guards = {"asker": kit.guard(op_call=op_call)}
    async with stage([], shop(paid), routing(handle), guards=guards) as agent:
        result = await agent.invoke("pay")
        assert (result.status, len(result.requests)) == ("parked", 1)
        assert entries(agent) == [("pay", "started"), ("pay", "waiting")]
        await agent.host.approvals.answer(result.requests[0], Approval("allow"))
        result = await agent.resume()
        assert (result.status, result.text) == ("completed", "receipt 2")
        assert paid == ["first", "second"]
        assert entries(agent)[-1] == ("pay", "handled")


async def test_approvals_do_not_count_as_interruptions(stage, kit):
    async def handle(request, ctx):
        return [await ctx.dispatch("till.pay", {"mark": str(number)}) for number in range(6)][-1]

    guards = {"asker": kit.guard(op_call=lambda event: Ask("Pay?") if event.op == "till.pay" else None)}
    async with stage([], shop([]), routing(handle), guards=guards) as agent:
        result = await agent.invoke("pay")
        while result.status == "parked":
            await agent.host.approvals.answer(result.requests[0], Approval("allow"))
            result = await agent.resume()
        assert (result.status, result.text) == ("completed", "receipt 6")


# Routes that do not run again


def asking(kit):
    """Build a guard that asks before the second payment."""
    return {"asker": kit.guard(op_call=lambda event: Ask("Again?") if event.params.get("mark") == "second" else None)}


async def pay_twice(request, ctx):
    await ctx.dispatch("till.pay", {"mark": "first"})
    return await ctx.dispatch("till.pay", {"mark": "second"})


def ends(events):
    return [(one.name, one.reason, one.handled) for one in events if one.hook == "route_end"]


async def test_model_learns_of_the_effects_of_a_handler_that_was_aborted(stage):
    async def handle(request, ctx):
        await ctx.dispatch("till.pay", {"mark": "first"})
        agent.abort()
        await anyio.sleep_forever()

    events = []
    async with stage(["ok"], shop([]), routing(handle, "^pay"), on_event=events.append) as agent:
        assert (await agent.invoke("pay")).status == "aborted"
        assert entries(agent) == [("pay", "started"), ("pay", "failed")]
        await agent.invoke("go on")
        first, note, last = (one.text for one in agent.scripted.requests[0].messages)
    assert (first, last) == ("pay", "go on")
    assert "was interrupted. It has caused effects: till.pay, effect" in note
    assert ends(events) == [("pay", "the run was aborted", False)]


async def test_model_learns_of_the_effects_of_a_route_whose_run_was_not_resumed(stage, kit):
    events = []
    plugin = routing(pay_twice, "^pay")
    async with stage(["ok"], shop([]), plugin, guards=asking(kit), on_event=events.append) as agent:
        assert (await agent.invoke("pay")).status == "parked"
        result = await agent.invoke("go on")
        assert entries(agent) == [("pay", "started"), ("pay", "waiting"), ("pay", "failed")]
        first, note, last = (one.text for one in agent.scripted.requests[0].messages)
        assert [one.text for one in result.messages] == ["go on", "ok"]
    assert (first, last) == ("pay", "go on")
    assert "was interrupted. It has caused effects: till.pay, effect" in note
    assert ends(events) == [("pay", "its run was not resumed", False)]


async def test_model_gets_no_message_about_a_waiting_route_without_effects(stage, kit):
    async def handle(request, ctx):
        return await ctx.dispatch("till.pay", {"mark": "second"})

    async with stage(["ok"], shop([]), routing(handle, "^pay"), guards=asking(kit)) as agent:
        await agent.invoke("pay")
        await agent.invoke("go on")
        assert [one.text for one in agent.scripted.requests[0].messages] == ["pay", "go on"]


async def test_handler_that_waits_for_an_approval_is_not_reported_as_failed(stage, kit, caplog):
    async with stage([], shop([]), routing(pay_twice), guards=asking(kit)) as agent:
        assert (await agent.invoke("pay")).status == "parked"
    assert "failed" not in caplog.text


async def test_model_learns_in_a_copy_of_the_session_what_a_route_may_have_done(stage, kit):
    paid = []
    async with stage(["ok"], shop(paid), routing(pay_twice, "^pay"), guards=asking(kit)) as agent:
        await agent.invoke("pay")
        await agent.fork()
        await agent.invoke("go on")
        note = agent.scripted.requests[0].messages[1].text
    assert "was interrupted. It may have caused effects." in note
    assert paid == ["first"]


async def test_waiting_route_continues_before_a_route_that_was_added_meanwhile(stage, kit):
    def hasty(request, ctx):
        return "done"

    added, paid = [], []
    plugin = routing(pay_twice, routes=lambda event: [*added, Route("pay", "", pay_twice)])
    async with stage([], shop(paid), plugin, guards=asking(kit)) as agent:
        result = await agent.invoke("pay")
        added.append(Route("hasty", "", hasty, order=-1))
        await agent.host.approvals.answer(result.requests[0], Approval("allow"))
        assert (await agent.resume()).text == "receipt 2"
    assert paid == ["first", "second"]


async def test_aborted_route_may_have_caused_effects_if_the_ledger_cannot_be_searched(stage):
    async def handle(request, ctx):
        await ctx.dispatch("till.pay", {"mark": "x"})
        index = agent.host.ledger.folder / "index.sqlite"
        index.unlink(missing_ok=True)
        index.mkdir()
        agent.abort()
        await anyio.sleep_forever()

    async with stage(["ok"], shop([]), routing(handle, "^pay")) as agent:
        assert (await agent.invoke("pay")).status == "aborted"
        assert "was interrupted. It may have caused effects." in agent.session.messages()[-1].text


async def test_effects_that_a_continued_handler_does_not_request_again_are_reported(stage, kit, caplog):
    begun = []

    async def handle(request, ctx):
        begun.append(1)
        if len(begun) == 2:
            return "done"
        return await pay_twice(request, ctx)

    async with stage([], shop([]), routing(handle), guards=asking(kit)) as agent:
        result = await agent.invoke("pay")
        await agent.host.approvals.answer(result.requests[0], Approval("allow"))
        assert (await agent.resume()).text == "done"
    assert "ran again and did not request effects that it had begun: till.pay, effect" in caplog.text


async def test_run_that_is_aborted_before_its_input_is_stored_leaves_the_route_of_the_last_one(stage, kit):
    def stop(event):
        if event.text == "stop":
            agent.abort()

    async with stage(["ok"], shop([]), routing(pay_twice, "^pay", input=stop), guards=asking(kit)) as agent:
        await agent.invoke("pay")
        assert (await agent.invoke("stop")).status == "aborted"
        assert entries(agent)[-1] == ("pay", "waiting")
        await agent.invoke("go on")
        assert entries(agent)[-1] == ("pay", "failed")


@pytest.mark.parametrize("ends", ["handled", "aborted", "abandoned"])
async def test_large_answers_of_a_handler_are_deleted_after_its_end(stage, kit, tmp_path, ends):
    @op("till.list", level=Level.SAFE)
    async def receipts(params: Mark, ctx) -> str:
        """List the receipts."""
        return "x" * 100_000

    async def handle(request, ctx):
        await ctx.dispatch("till.list", {"mark": "second"})
        assert len(list((tmp_path / "home" / "replays").iterdir())) == 1
        if ends == "aborted":
            agent.abort()
            await anyio.sleep_forever()
        if ends == "abandoned":
            await ctx.dispatch("till.list", {"mark": "third"})
        return "done"

    def op_call(event):
        return Ask("List?") if event.params.get("mark") == "third" else None

    till = Plugin("op", "till", SimpleNamespace(sideband_ops=lambda: OpFamily("till", (receipts,))))
    guards = {"asker": kit.guard(op_call=op_call)}
    async with stage(["ok"], till, routing(handle, "^pay"), guards=guards) as agent:
        await agent.invoke("pay")
        await agent.invoke("go on")
    assert list((tmp_path / "home" / "replays").iterdir()) == []


async def test_route_that_declined_is_not_tried_again_if_the_waiting_one_is_gone(stage, kit):
    tried = []
    routes = [Route("first", "", lambda request, ctx: tried.append(1)), Route("pay", "", pay_twice, order=1)]
    plugin = routing(pay_twice, routes=lambda event: [*routes])
    async with stage(["ok"], shop([]), plugin, guards=asking(kit)) as agent:
        await agent.invoke("pay")
        routes.pop()
        assert (await agent.resume()).text == "ok"
        assert entries(agent)[-2:] == [("pay", "waiting"), ("pay", "failed")]
    assert tried == [1]


# Killed hosts


def test_model_learns_of_the_effects_of_a_killed_route_whose_run_is_not_resumed(shop):
    shop.arm("between")
    assert shop.run(route=True) is None
    answer = shop.run(new_input=True, calls=0)
    assert answer["routes"] == ["started", "failed"]
    assert "was interrupted. It has caused effects: till.pay, effect" in answer["notes"][0]


def test_handler_that_was_killed_runs_again_and_causes_each_effect_once(shop):
    shop.arm("between")
    assert shop.run(route=True) is None
    assert len(shop.lines("effects")) == 1
    answer = shop.run(route=True)
    assert answer["run"] == ["completed", None]
    assert answer["said"] == "receipt 1, receipt 2"
    assert len(shop.lines("effects")) == 2
    assert shop.lines("handled") == ["pay", "pay"]
    assert shop.lines("asked model") == []
    assert answer["routes"] == ["started", "started", "handled"]


def test_route_is_not_tried_again_once_its_reply_is_stored(shop):
    shop.arm("replied")
    assert shop.run(route=True) is None
    answer = shop.run(route=True)
    assert answer["run"] == ["completed", None]
    assert answer["said"] == "receipt 1, receipt 2"
    assert shop.lines("handled") == ["pay"]


def test_effect_in_doubt_stops_the_handler_and_the_model_is_asked(shop):
    shop.arm("after same")
    assert shop.run(route=True) is None
    answer = shop.run(route=True, calls=0)
    assert answer["said"] == "finished"
    assert len(shop.lines("effects")) == 1
    assert answer["routes"] == ["started", "started", "failed"]
    assert answer["notes"][0].startswith("The route `pay` began to handle this input")


def test_handler_that_ignores_an_effect_in_doubt_has_failed(shop):
    shop.arm("after same")
    assert shop.run(route="ignores") is None
    answer = shop.run(route="ignores", calls=0)
    assert answer["said"] == "finished"
    assert answer["routes"] == ["started", "started", "failed"]


def test_route_that_declined_before_the_kill_is_not_tried_again(shop):
    shop.arm("between")
    assert shop.run(route="declines") is None
    answer = shop.run(route="declines")
    assert answer["said"] == "receipt 1, receipt 2"
    assert shop.lines("handled") == ["decline", "pay", "pay"]
    assert answer["routes"] == ["started", "declined", "started", "started", "handled"]


def test_interrupted_route_that_is_gone_is_reported_to_the_model(shop):
    shop.arm("between")
    assert shop.run(route=True) is None
    answer = shop.run(calls=0)
    assert answer["said"] == "finished"
    assert answer["routes"] == ["started", "failed"]
    assert "was interrupted. It has caused effects: till.pay, effect" in answer["notes"][0]


def test_route_that_was_killed_before_an_effect_was_recorded_may_have_caused_others(shop):
    shop.arm("begun")
    assert shop.run(route=True) is None
    answer = shop.run(new_input=True, calls=0)
    assert "was interrupted. It may have caused effects." in answer["notes"][0]


def test_handler_that_kills_its_host_each_time_is_given_up(shop):
    shop.arm(*["between"] * 5)
    for _ in range(4):
        assert shop.run(route=True) is None
    answer = shop.run(route=True, calls=0)
    assert answer["said"] == "finished"
    assert answer["routes"] == [*["started"] * 5, "failed"]
    assert len(shop.lines("handled")) == 4
    assert len(shop.lines("effects")) == 1


def test_run_that_was_killed_after_the_model_was_asked_is_not_routed(shop):
    shop.arm("model go 0")
    assert shop.run(calls=0) is None
    answer = shop.run(route=True, calls=0)
    assert answer["said"] == "finished"
    assert answer["routes"] == []
    assert shop.lines("handled") == []
