"""Rights of an op family of its own: declared, given to the plugin by name, and out of the reach of others."""

from functools import partial
from types import SimpleNamespace

import anyio
import pytest
from attrs import evolve
from sideband import Plugin
from sideband.approvals import ApprovalNeeded
from sideband.errors import ConfigurationError
from sideband.hooks import Ask, Deny, Replace, hookimpl
from sideband.ledger import query
from sideband.ops import (
    ContextRevoked,
    OpContext,
    OpDenied,
    OpError,
    OpFamily,
    OpUnavailable,
    Origin,
    op,
)
from sideband.plugins import PluginConflict, PluginInvalid

from .own_rights import NORTH, SOUTH, WEB, Person, Request, WebScope, find, find_in, find_on, geo, get, giving

pytestmark = pytest.mark.anyio


async def test_plugin_uses_a_right_of_its_own_that_its_caller_does_not_have(make_host):
    async with make_host(WEB, geo(NORTH), settings=giving(NORTH)) as host:
        assert await find_on(host) == "north.example"
        with pytest.raises(OpDenied):
            await host.op("web.get", {}, grants=[])


@pytest.mark.parametrize("given", [NORTH, "web"])
async def test_ledger_records_the_child_effect_with_its_parent_and_whose_rights_it_used(make_host, given):
    async with make_host(WEB, geo(NORTH), settings=giving(given)) as host:
        await find_on(host)
        (child,) = await query(host.ledger.folder, op="web.get")
        (parent,) = await query(host.ledger.folder, op="geo.find")
    assert (child.within, child.origin.plugin) == (parent.effect, "geo")
    assert (child.grant, child.granted_by) == ((NORTH,), ("plugin:geo policy",))
    assert parent.granted_by == ()


@pytest.mark.parametrize("given", [("web",), ("web:host=north*",), (NORTH, SOUTH)])
async def test_what_is_not_declared_is_never_given(make_host, given):
    person = Person()
    async with make_host(WEB, geo(NORTH), settings=giving(*given), approver=person) as host:
        with pytest.raises(OpDenied, match=r"`web:host=south\.example` is not granted"):
            await find_on(host, "south.example")
        (child,) = await query(host.ledger.folder, op="web.get")
    assert (child.status, child.grant, person.asked) == ("denied", (NORTH,), [])


async def test_user_is_not_asked_for_rights_that_would_not_be_enough(make_host):
    person = Person()
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        with pytest.raises(OpDenied, match=r"`web:host=south\.example` is not granted"):
            await find_on(host, "south.example")
        (child,) = await query(host.ledger.folder, op="web.get")
    assert (child.grant, person.asked) == ((), [])


async def test_op_is_asked_once_for_its_scope_if_all_rights_were_given(make_host):
    asked = []

    def scope(params):
        asked.append(params.host)
        return WebScope(host=params.host)

    web = Plugin("op", "web", SimpleNamespace(sideband_ops=lambda: OpFamily("web", (counted,), scope=WebScope)))
    counted = evolve(get, scope=scope)
    async with make_host(web, geo(NORTH), settings=giving(NORTH)) as host:
        await find_on(host)
    assert asked == ["north.example"]


async def test_policy_can_give_less_than_is_declared(make_host):
    async with make_host(WEB, geo("web"), settings=giving(NORTH)) as host:
        assert await find_on(host) == "north.example"
        with pytest.raises(ApprovalNeeded):
            await find_on(host, "south.example")


async def test_plugin_that_does_not_declare_what_it_requests_learns_it_even_if_other_rights_are_missing(make_host):
    person = Person()
    async with make_host(WEB, geo(SOUTH), approver=person) as host:
        with pytest.raises(OpDenied) as caught:
            await find_on(host)
    assert (caught.value.hint, person.asked) == ("declare it in `OpFamily.uses`", [])


async def test_plugin_that_declares_nothing_has_no_rights_of_its_own(make_host):
    person = Person()
    async with make_host(WEB, geo(), settings=giving("web"), approver=person) as host:
        with pytest.raises(OpDenied, match="the plugin `geo` requests it with rights of its own") as caught:
            await find_on(host)
    assert (caught.value.hint, person.asked) == ("declare it in `OpFamily.uses`", [])


async def test_rights_of_its_own_do_not_include_those_of_the_caller(make_host):
    async with make_host(WEB, geo(NORTH)) as host:
        with pytest.raises(ApprovalNeeded):
            await host.op("geo.find", {}, grants=["web"])


async def test_second_plugin_that_claims_the_name_is_refused(make_host):
    rival = geo(NORTH, distribution="other-geo")
    async with make_host(WEB, geo(NORTH), rival, settings=giving(NORTH)) as host:
        with pytest.raises(PluginConflict):
            await host.plugins.load("op", "geo")
        with pytest.raises(OpUnavailable, match="other-geo"):
            await find_on(host)
        assert await query(host.ledger.folder, op="web.get") == ()


async def test_plugin_of_another_name_cannot_use_them(make_host):
    @op("map.find")
    async def steal(params: Request, ctx: OpContext) -> str:
        return await ctx.dispatch("web.get", {}, rights="own")

    thief = geo(NORTH, ops=(steal,), name="map")
    async with make_host(WEB, geo(NORTH), thief, settings=giving(NORTH)) as host:
        with pytest.raises(ApprovalNeeded, match="map"):
            await host.op("map.find", {}, grants=[])


async def test_child_effects_of_the_used_op_have_these_rights_too_but_no_others(make_host):
    @op("relay.get")
    async def relay(params: Request, ctx: OpContext) -> str:
        return await ctx.dispatch("web.get", {"host": params.host})

    @op("geo.far")
    async def far(params: Request, ctx: OpContext) -> str:
        return await ctx.dispatch("relay.get", {"host": params.host}, rights="own")

    plugins = (geo(NORTH, ops=(far,)), geo("web", ops=(relay,), name="relay"))
    async with make_host(WEB, *plugins, settings=giving(NORTH)) as host:
        assert await host.op("geo.far", {}, grants=[]) == "north.example"
        with pytest.raises(OpDenied, match="south"):
            await host.op("geo.far", {"host": "south.example"}, grants=["web"])


async def test_plugin_can_narrow_its_own_rights(make_host):
    @op("geo.narrow")
    async def narrow(params: Request, ctx: OpContext) -> str:
        return await ctx.dispatch("web.get", {"host": params.host}, rights="own", capabilities=[NORTH])

    person = Person()
    async with make_host(WEB, geo(NORTH, SOUTH, ops=(narrow,)), settings=giving("web"), approver=person) as host:
        assert await host.op("geo.narrow", {}, grants=[]) == "north.example"
        with pytest.raises(OpDenied):
            await host.op("geo.narrow", {"host": "south.example"}, grants=["web"])
    assert person.asked == []


async def test_result_with_a_key_can_be_repeated_by_a_caller_without_these_rights(make_host):
    async with make_host(WEB, geo(NORTH), settings=giving(NORTH)) as host:
        for _ in range(2):
            assert await host.op("geo.find", {}, grants=[], key="once") == "north.example"
        assert len(await query(host.ledger.folder, op="web.get")) == 1


async def test_guards_decide_about_the_effect_and_their_parameters_are_checked(make_host, hook):
    answers = iter([Deny("no"), Replace({"host": "south.example"}), Ask("sure?")])

    @hookimpl
    async def op_call(event):
        if event.op != "web.get":
            return None
        assert (event.origin.plugin, event.grant) == ("geo", (NORTH,))
        return next(answers)

    person = Person(scope="once")
    async with make_host(WEB, geo(NORTH), hook("strict", op_call), settings=giving(NORTH), approver=person) as host:
        with pytest.raises(OpDenied, match="no"):
            await find_on(host)
        with pytest.raises(OpDenied, match="south"):
            await find_on(host)
        assert await find_on(host) == "north.example"
    assert [one.kind for one in person.requests] == ["effect"]


async def test_deadline_of_the_caller_holds(make_host):
    @op("web.until", requires="web")
    async def until(params: Request, ctx: OpContext) -> float:
        return ctx.deadline

    @op("geo.until", timeout=30)
    async def compare(params: Request, ctx: OpContext) -> bool:
        return await ctx.dispatch("web.until", {}, rights="own") == ctx.deadline

    web = Plugin("op", "web", SimpleNamespace(sideband_ops=lambda: OpFamily("web", (until,))))
    async with make_host(web, geo("web", ops=(compare,)), settings=giving("web")) as host:
        assert not await host.op("geo.until", {}, grants=[])
        assert await host.op("geo.until", {}, grants=[], deadline=20)


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_effect_is_cancelled_with_its_caller(make_host):
    staying = anyio.Event()

    @op("web.stay", requires="web")
    async def stay(params: Request, ctx: OpContext) -> None:
        staying.set()
        await anyio.sleep_forever()

    @op("geo.stay")
    async def wait(params: Request, ctx: OpContext) -> None:
        await ctx.dispatch("web.stay", {}, rights="own")

    web = Plugin("op", "web", SimpleNamespace(sideband_ops=lambda: OpFamily("web", (stay,))))
    async with make_host(web, geo("web", ops=(wait,)), settings=giving("web")) as host:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(host.op, "geo.stay", {}, grants=[]))
            await staying.wait()
            tasks.cancel_scope.cancel()
        (child,) = await query(host.ledger.folder, op="web.stay")
    assert child.status == "cancelled"


async def test_effect_belongs_to_the_call_and_the_session_of_its_caller(make_host):
    answered = []

    async def on_answer(effect, op, answer):
        answered.append(op)

    async with make_host(WEB, geo(NORTH), settings=giving(NORTH)) as host:
        origin = Origin("ann", "s", "r", "1.0", "trip", "find")
        await find_in(host, origin, on_answer=on_answer)
        (child,) = await query(host.ledger.folder, op="web.get")
    assert child.origin == evolve(origin, plugin="geo")
    assert answered == ["web.get", "geo.find"]


async def test_revoked_context_cannot_use_them(make_host):
    kept = []

    @op("geo.keep")
    async def keep(params: Request, ctx: OpContext) -> None:
        kept.append(ctx)

    async with make_host(WEB, geo(NORTH, ops=(keep,)), settings=giving(NORTH)) as host:
        await host.op("geo.keep", {}, grants=[])
        with pytest.raises(ContextRevoked):
            await kept[0].dispatch("web.get", {}, rights="own")


async def test_host_can_give_them_for_its_own_lifetime(make_host, tmp_path):
    async with make_host(WEB, geo(NORTH), grants={"plugin:geo": [NORTH]}) as host:
        assert await find_on(host) == "north.example"
    assert not (tmp_path / "home" / "grants.toml").exists()


async def test_invalid_grant_in_the_configuration_is_reported_with_its_key(make_host):
    async with make_host(WEB, geo(NORTH), settings=giving("web:path=x")) as host:
        with pytest.raises(OpError, match="unknown field `path`") as caught:
            await find_on(host)
        (child,) = await query(host.ledger.folder, op="web.get")
    assert (caught.value.code, child.grant) == (ConfigurationError.code, ())


@pytest.mark.parametrize("uses", ["web", ["web:host"], [1]])
async def test_invalid_declaration_is_an_invalid_plugin(make_host, uses):
    family = OpFamily("geo", (find,), uses=uses)
    async with make_host(WEB, Plugin("op", "geo", SimpleNamespace(sideband_ops=lambda: family))) as host:
        with pytest.raises(PluginInvalid, match="`uses`"):
            await host.plugins.load("op", "geo")


async def test_unknown_kind_of_rights_is_an_error(make_host):
    @op("geo.mistake")
    async def mistake(params: Request, ctx: OpContext) -> None:
        with pytest.raises(ValueError, match="`caller` or `own`"):
            await ctx.dispatch("web.get", {}, rights="mine")

    async with make_host(WEB, geo(NORTH, ops=(mistake,))) as host:
        await host.op("geo.mistake", {})
