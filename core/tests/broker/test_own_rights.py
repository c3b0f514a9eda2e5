"""Rights of an op family of its own: declared, given to the plugin by name, and out of the reach of others."""

import re
from functools import partial
from types import SimpleNamespace

import anyio
import attrs
import pytest
from attrs import evolve
from pydantic import BaseModel
from sideband import Plugin
from sideband.approvals import Approval, ApprovalNeeded
from sideband.broker import Call
from sideband.errors import ConfigurationError
from sideband.hooks import Ask, Deny, HookRegistry, Replace, hookimpl
from sideband.ledger import query
from sideband.ops import (
    ContextRevoked,
    Grant,
    Level,
    OpContext,
    OpDenied,
    OpError,
    OpFamily,
    OpUnavailable,
    Origin,
    Scope,
    op,
)
from sideband.plugins import PluginConflict, PluginInvalid

pytestmark = pytest.mark.anyio
NORTH, SOUTH = "web:host=north.example", "web:host=south.example"


class Request(BaseModel):
    host: str = "north.example"
    body: str = ""


@attrs.frozen
class WebScope(Scope, family="web"):
    host: str | None = None


@op("web.get", requires="web", scope=lambda params: WebScope(host=params.host), record=["host"])
async def get(params: Request, ctx: OpContext) -> str:
    return params.host


@op("geo.find", record=["host"])
async def find(params: Request, ctx: OpContext) -> str:
    return await ctx.dispatch("web.get", params.model_dump(exclude_unset=True), rights="own")


WEB = Plugin("op", "web", SimpleNamespace(sideband_ops=lambda: OpFamily("web", (get,), scope=WebScope)))


def geo(*uses, ops=(find,), distribution="sideband-geo", name="geo"):
    family = OpFamily(name, ops, uses=uses)
    return Plugin("op", name, SimpleNamespace(sideband_ops=lambda: family), distribution)


class Person:
    """An approver that keeps the requests, and gives the same answer to all."""

    def __init__(self, verdict="allow", scope="always"):
        self.requests = []
        self.answer = Approval(verdict, scope, by="me")

    async def __call__(self, request):
        self.requests.append(request)
        return self.answer if self.answer.allowed else Approval("deny", reason="not today")

    @property
    def asked(self):
        return [tuple(one.effect["capabilities"]) for one in self.requests]


def giving(*capabilities):
    return {"grants": {"plugin:geo": capabilities}}


async def find_on(host, name="north.example"):
    """Call the op as a skill without any right would."""
    return await host.op("geo.find", {"host": name}, grants=[])


async def find_in(host, origin, op="geo.find", name="north.example", *, body="", **options):
    """Call the op in a call of this origin, without any right."""
    call = Call("call", Grant(), "caller", origin, anyio.current_time() + 60, **options)
    return await host.broker.dispatch(call, op, {"host": name, "body": body})


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


async def test_user_is_asked_once_and_sees_the_exact_rights(make_host):
    person = Person()
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host:
        await find_on(host)
        await find_on(host, "south.example")
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host:
        await find_on(host)
        found = await query(host.ledger.folder, op="web.get")
    (request,) = person.requests
    assert (request.kind, request.subject, request.origin.plugin) == ("grant", "plugin:geo", "geo")
    assert (request.grants, request.level) == ({"always": (NORTH, SOUTH)}, Level.MONITORED)
    assert (request.effect["source"], request.effect["op"]) == ("sideband-geo 0", "web.get")
    assert [one.granted_by for one in reversed(found)] == [
        ("plugin:geo person",),
        ("plugin:geo remembered",),
        ("plugin:geo remembered",),
    ]


async def test_approver_of_the_caller_is_asked_before_that_of_the_host(make_host):
    of_caller, of_host = Person(scope="once"), Person()
    hooks = HookRegistry()
    hooks.approver = of_caller
    async with make_host(WEB, geo(NORTH), approver=of_host) as host:
        await find_in(host, Origin(), hooks=hooks)
    assert (of_caller.asked, of_host.asked) == ([(NORTH,)], [])


async def test_refusal_holds_for_the_run_the_plugin_and_the_rights_that_were_asked_for(make_host, tmp_path):
    person, run = Person("deny"), Origin(run="r")
    rival = geo(NORTH, SOUTH, ops=(evolve(find, name="map.find"),), name="map")
    async with make_host(WEB, geo(NORTH, SOUTH), rival, approver=person) as host:
        for name in ("geo.find", "geo.find", "map.find"):
            with pytest.raises(OpDenied):
                await find_in(host, run, name)
        assert [one.subject for one in person.requests] == ["plugin:geo", "plugin:map"]
        (tmp_path / "home" / "grants.toml").write_text(f'[plugins."geo:sideband-geo"]\ncapabilities = ["{NORTH}"]\n')
        with pytest.raises(OpDenied):
            await find_in(host, run, name="south.example")
    assert person.asked == [(NORTH, SOUTH), (NORTH, SOUTH), (SOUTH,)]


async def test_grant_for_a_session_is_for_the_plugin_of_one_distribution(make_host):
    person, session = Person(scope="session"), Origin(session="s", run="r")
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        for _ in range(2):
            assert await find_in(host, session) == "north.example"
    async with make_host(WEB, geo(NORTH, distribution="other-geo")) as host:
        with pytest.raises(ApprovalNeeded):
            await find_in(host, session)
    assert len(person.asked) == 1


async def test_parallel_effects_ask_one_question(make_host):
    person = Person()
    hosts = ["north.example", "south.example"]
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host, anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(find_on, host, hosts[number % 2])
    assert person.asked == [(NORTH, SOUTH)]


async def test_declaration_that_grows_asks_for_the_difference_when_it_is_needed(make_host):
    person = Person()
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_on(host)
    async with make_host(WEB, geo(NORTH, SOUTH), approver=person) as host:
        await find_on(host)
        assert person.asked == [(NORTH,)]
        await find_on(host, "south.example")
    assert person.asked == [(NORTH,), (SOUTH,)]


async def test_refusal_denies_the_effect_and_nothing_is_remembered(make_host, tmp_path, hook):
    seen = []

    @hookimpl
    async def effect(event):
        if event.op == "web.get":
            seen.append(event.grant)

    async with make_host(WEB, geo(NORTH), hook("watch", effect), approver=Person("deny")) as host:
        with pytest.raises(OpDenied, match=r"the plugin `geo` requests it .*; they were refused: not today") as caught:
            await find_on(host)
        (child,) = await query(host.ledger.folder, op="web.get")
    assert (child.status, child.grant, seen) == ("denied", (), [()])
    assert f'"plugin:geo" = ["{NORTH}"]' in caught.value.hint
    assert not (tmp_path / "home" / "grants.toml").exists()


async def test_approval_of_one_effect_gives_no_right_to_the_next(make_host):
    person, origin = Person(scope="once"), Origin(session="s", run="r", step="0.0")
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_in(host, origin)
        await find_in(host, origin)
    assert len(person.asked) == 2


async def test_approval_of_one_effect_does_not_admit_what_a_guard_makes_of_it(make_host, hook):
    @hookimpl
    async def op_call(event):
        return Replace({"host": "south.example"}) if event.op == "web.get" else None

    class OnlyNorth(Person):
        async def __call__(self, request):
            await super().__call__(request)
            allowed = request.effect["arguments"] == {"host": "north.example"}
            return Approval("allow" if allowed else "deny", "once")

    person = OnlyNorth(scope="once")
    async with make_host(WEB, geo(NORTH, SOUTH), hook("strict", op_call), approver=person) as host:
        with pytest.raises(OpDenied, match="the plugin `geo` requests it"):
            await host.op("geo.find", {"host": "north.example"}, grants=[])
        (child,) = await query(host.ledger.folder, op="web.get")
    assert (child.status, child.params, len(person.asked)) == ("denied", {"host": "south.example"}, 2)


@pytest.mark.parametrize("other", [("2", "a", "x"), ("1", "b", "x"), ("1", "a", "y")], ids=["op", "skill", "params"])
async def test_request_for_one_effect_depends_on_all_parameters_and_on_the_versions_of_op_and_skill(make_host, other):
    async def digest(version, code, body):
        async with make_host(evolve(WEB, version=version), geo(NORTH)) as host:
            with pytest.raises(ApprovalNeeded) as caught:
                await find_in(host, Origin(), body=body, code=code)
            return caught.value.request.digest

    assert await digest("1", "a", "x") == await digest("1", "a", "x")
    assert await digest("1", "a", "x") != await digest(*other)


async def test_without_an_approver_the_request_is_stored_and_its_answer_counts(make_host):
    async with make_host(WEB, geo(NORTH)) as host:
        with pytest.raises(ApprovalNeeded) as caught:
            await find_on(host)
        assert "--grant" not in caught.value.hint  # it would give the right to a skill
        (stored,) = await host.approvals.list()
        await host.approvals.answer(stored.request.id, Approval("allow", "always"))
        assert await find_on(host) == "north.example"


async def test_revoked_right_is_gone_for_the_next_dispatch(make_host, tmp_path):
    person = Person()
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_on(host)
        person.answer = Approval("deny")
        file = tmp_path / "home" / "grants.toml"
        file.write_text(re.sub("capabilities = .*", "capabilities = []", file.read_text()))
        with pytest.raises(OpDenied):
            await find_on(host)
    assert len(person.asked) == 2


async def test_remembered_rights_are_those_of_the_plugin_of_one_distribution(make_host):
    person = Person()
    async with make_host(WEB, geo(NORTH), approver=person) as host:
        await find_on(host)
    person.answer = Approval("deny")
    async with make_host(WEB, geo(NORTH, distribution="other-geo"), approver=person) as host:
        with pytest.raises(OpDenied):
            await find_on(host)
    assert len(person.asked) == 2


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
