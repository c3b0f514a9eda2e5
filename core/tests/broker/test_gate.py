"""Scope fields whose value is known only while the op runs are checked by the handler instead of the gate."""

from types import MappingProxyType

import pytest
from attrs import frozen
from pydantic import BaseModel
from sideband.ops import Level, OpContext, OpDenied, Scope, op

pytestmark = pytest.mark.anyio


class Trip(BaseModel):
    to: str = "farm"
    surface: str = "gravel"


@frozen
class RoadScope(Scope, family="road"):
    to: str | None = None
    surface: str | None = None
    known_later = ("surface",)
    defaults = MappingProxyType({"surface": ("paved",)})


@pytest.fixture
def road(family):
    """Return a plugin with an op that determines the surface of the road in its handler."""

    @op("road.take", requires="road", level=Level.MONITORED, scope=lambda params: RoadScope(to=params.to))
    async def take(params: Trip, ctx: OpContext) -> str:
        ctx.require(RoadScope(to=params.to, surface=params.surface))
        return "arrived"

    return family("road", take, scope=RoadScope)


async def test_field_known_later_is_not_checked_at_the_gate(make_host, road):
    async with make_host(road) as host:
        assert await host.op("road.take", {}, grants=["road:to=farm,surface=gravel"]) == "arrived"


async def test_field_known_later_is_checked_by_the_handler(make_host, road):
    async with make_host(road) as host:
        for grant in ("road:to=farm", "road:surface=paved", "road"):
            with pytest.raises(OpDenied, match="surface=gravel"):
                await host.op("road.take", {}, grants=[grant])


async def test_handler_learns_what_the_grant_allows_without_being_denied(make_host, family):
    @op("road.plan", requires="road", level=Level.MONITORED, scope=lambda params: RoadScope(to=params.to))
    async def plan(params: Trip, ctx: OpContext) -> list[bool]:
        scopes = (RoadScope(to=params.to), RoadScope(to="town"), RoadScope(to=params.to, surface="gravel"))
        return [ctx.allows(scope) for scope in scopes]

    async with make_host(family("road", plan, scope=RoadScope)) as host:
        assert await host.op("road.plan", {}, grants=["road:to=farm"]) == [True, False, False]
        assert await host.op("road.plan", {}, grants=["road:to=farm,surface=gravel"]) == [True, False, True]


async def test_other_fields_are_checked_at_the_gate(make_host, road):
    async with make_host(road) as host:
        with pytest.raises(OpDenied, match="`road:to=town` is not granted"):
            await host.op("road.take", {"to": "town"}, grants=["road:to=farm,surface=gravel"])


async def test_fields_of_different_capabilities_do_not_combine(make_host, road):
    async with make_host(road) as host:
        with pytest.raises(OpDenied):
            await host.op("road.take", {}, grants=["road:to=farm", "road:to=town,surface=gravel"])


async def test_all_scopes_that_a_handler_requires_are_in_one_hint(make_host, family):
    @op("road.tour", requires="road", level=Level.MONITORED)
    async def tour(params: Trip, ctx: OpContext) -> None:
        ways = (("farm", "gravel"), ("town", "sand"), ("town", "sand"), ("sea", "paved"))
        ctx.require(*(RoadScope(to=to, surface=surface) for to, surface in ways))

    async with make_host(family("road", tour, scope=RoadScope)) as host:
        with pytest.raises(OpDenied) as caught:
            await host.op("road.tour", {}, grants=["road:to=sea"])
        assert "with --grant 'road:surface=gravel,to=farm' --grant 'road:surface=sand,to=town';" in caught.value.hint
