"""Guards see and the ledger records the level of an effect, which depends on its grant and its parameters."""

import anyio
import attrs
import pytest
from pydantic import BaseModel
from sideband import hookimpl
from sideband.broker import Call
from sideband.hooks import Allow, Deny, Replace
from sideband.ops import LIMITED, Level, Lower, OpContext, OpDenied, Origin, Scope, op

pytestmark = pytest.mark.anyio


class Trip(BaseModel):
    to: str = "farm"
    load: str = "none"
    next: str | None = None


@attrs.frozen
class RoadScope(Scope, family="road"):
    to: str | None = None
    load: str | None = None


RULES = [Lower(Level.MONITORED, to=LIMITED, load=("none",)), Lower(Level.CONTROLLED, load=("none",))]


@op(
    "road.take",
    requires="road",
    scope=lambda params: RoadScope(to=params.to, load=params.load),
    level=Level.RESTRICTED,
    lower=RULES,
)
async def take(params: Trip, ctx: OpContext) -> str:
    if params.next is not None:
        ctx.require(RoadScope(to=params.next, load=params.load))
    return "arrived"


@op("road.walk", requires="road", level=Level.RESTRICTED, lower=RULES)
async def walk(params: Trip, ctx: OpContext) -> str:
    return "arrived"


@op(
    "road.sell",
    requires="road",
    scope=lambda params: RoadScope(to=params.to, load=params.load),
    level=Level.CONTROLLED,
    needs={"load": ("grain",)},
)
async def sell(params: Trip, ctx: OpContext) -> str:
    return "sold"


@pytest.fixture
def road(family):
    return family("road", take, walk, sell, scope=RoadScope)


@pytest.fixture
def recorded(ledger_lines):
    """Return a function that reads the levels of the effects in the ledger."""
    return lambda: [line["level"] for line in ledger_lines() if line.get("level") is not None]


async def test_level_of_an_effect_is_recorded(make_host, road, recorded):
    async with make_host(road) as host:
        await host.op("road.take", {}, grants=["road:to=farm"])
        await host.op("road.take", {}, grants=["road"])
        await host.op("road.take", {"load": "oil"}, grants=["road:to=farm"])
        await host.op("road.take", {})
    assert recorded() == ["MONITORED", "CONTROLLED", "RESTRICTED", "CONTROLLED"]


async def test_level_of_an_op_without_scope_follows_from_the_grant(make_host, road, recorded):
    async with make_host(road) as host:
        await host.op("road.walk", {}, grants=["road:to=farm,load=none"])
        await host.op("road.walk", {}, grants=["road:to=farm"])
        await host.op("road.walk", {}, grants=["road:to=farm,load=none", "road:load=none"])
    assert recorded() == ["MONITORED", "RESTRICTED", "CONTROLLED"]


async def test_level_holds_where_an_effect_goes_on_with_another_capability(make_host, road, recorded):
    grants = ["road:to=farm", "road:load=none"]
    async with make_host(road) as host:
        await host.op("road.take", {"next": "town"}, grants=grants)
    assert recorded() == ["CONTROLLED"]


async def test_denied_effect_is_recorded_with_the_declared_level(make_host, road, recorded):
    async with make_host(road) as host:
        with pytest.raises(OpDenied):
            await host.op("road.take", {}, grants=["road:to=town"])
    assert recorded() == ["RESTRICTED"]


async def test_guard_sees_the_level_of_the_effect(make_host, road, hook):
    @hookimpl
    def op_call(event):
        return Deny("too much") if event.level > Level.MONITORED else None

    async with make_host(road, hook("modest", op_call)) as host:
        assert await host.op("road.take", {}, grants=["road:to=farm"]) == "arrived"
        with pytest.raises(OpDenied, match="too much"):
            await host.op("road.take", {}, grants=["road"])
        with pytest.raises(OpDenied, match="too much"):
            await host.op("road.take", {"load": "oil"}, grants=["road:to=farm"])


async def test_guards_see_the_level_of_replaced_parameters(make_host, road, hook, recorded):
    seen = []

    def watching(name):
        @hookimpl
        def op_call(event):
            seen.append((name, event.params["load"], event.level))
            return Allow("seen")

        return hook(name, op_call)

    @hookimpl
    def op_call(event):
        return Replace({"load": "oil"})

    async with make_host(watching("a-first"), hook("b-loads", op_call), watching("c-last"), road) as host:
        await host.op("road.take", {"load": "none"}, grants=["road:to=farm"])
    assert seen == [
        ("a-first", "none", Level.MONITORED),
        ("c-last", "oil", Level.RESTRICTED),
        ("a-first", "oil", Level.RESTRICTED),
    ]
    assert recorded() == ["RESTRICTED"]


async def test_level_of_replaced_parameters_that_are_not_granted_is_the_declared_one(make_host, road, hook, recorded):
    @hookimpl
    def op_call(event):
        return Replace({"to": "town"})

    async with make_host(road, hook("diverts", op_call)) as host:
        with pytest.raises(OpDenied, match="is not granted"):
            await host.op("road.take", {}, grants=["road:to=farm"])
    assert recorded() == ["RESTRICTED"]


async def test_observers_see_the_level_of_the_effect(make_host, road, hook):
    seen = []

    @hookimpl
    def effect(event):
        seen.append(event.level)

    async with make_host(road, hook("observer", effect)) as host:
        await host.op("road.take", {}, grants=["road:to=farm"])
    assert seen == [Level.MONITORED]


async def test_effect_without_what_its_op_needs_is_denied(make_host, road):
    async with make_host(road) as host:
        assert await host.op("road.sell", {"load": "grain"}, grants=["road"]) == "sold"
        with pytest.raises(OpDenied, match="none of the values in its `needs`") as caught:
            await host.op("road.sell", {"load": "oil"}, grants=["road"])
    assert "author of the plugin `road`" in caught.value.hint


async def test_level_of_a_grant_is_the_highest_that_its_effects_can_have(make_host, road):
    async with make_host(road) as host:
        ops = host.broker.ops
        levels = {
            text: await ops.reach(await ops.grant([text]))
            for text in ("road", "road:load=none", "road:to=farm,load=none")
        }
    assert levels == {
        "road": Level.RESTRICTED,
        "road:load=none": Level.CONTROLLED,
        "road:to=farm,load=none": Level.MONITORED,
    }


async def test_lower_level_does_not_make_a_change_less_durable(make_host, road, monkeypatch):
    async with make_host(road) as host:
        write, durable = host.ledger.intent, []

        async def intent(entry, **options):
            durable.append((entry.level, options["durable"]))
            return await write(entry, **options)

        monkeypatch.setattr(type(host.ledger), "intent", lambda self, entry, **options: intent(entry, **options))
        await host.op("road.take", {}, grants=["road:to=farm"])
        await host.op("road.take", {}, grants=["road"])
    assert durable == [(Level.MONITORED, True), (Level.CONTROLLED, True)]


@pytest.mark.parametrize(
    ("granted", "allowed"), [("road:load=none", True), ("road:to=farm,load=none", False), ("road:to=farm", True)]
)
async def test_op_of_another_family_does_not_exceed_the_level_of_the_grant(make_host, road, family, granted, allowed):
    @op("sea.load", requires="road", level=Level.CONTROLLED)
    async def load(params: Trip, ctx: OpContext) -> str:
        return "loaded"

    async with make_host(road, family("sea", load)) as host:
        grant = await host.broker.ops.grant([granted])
        later = anyio.current_time() + 60
        of_skill = Call(id="call", grant=grant, domain="skill", origin=Origin(skill="hauler"), deadline=later)
        if allowed:
            assert await host.broker.dispatch(of_skill, "sea.load", {}) == "loaded"
        else:
            with pytest.raises(OpDenied, match="CONTROLLED, but the granted `road` reaches only MONITORED") as caught:
                await host.broker.dispatch(of_skill, "sea.load", {})
            assert "author of the plugin `sea`" in caught.value.hint
        assert await host.op("sea.load", {}, grants=[granted]) == "loaded"
