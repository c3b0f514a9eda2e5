"""What is known only while an op runs is not compared at the gate, and is compared once it is known."""

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
    """An op that finds out on the way what the road is like."""

    @op("road.take", requires="road", level=Level.MONITORED, scope=lambda params: RoadScope(to=params.to))
    async def take(params: Trip, ctx: OpContext) -> str:
        ctx.require(RoadScope(to=params.to, surface=params.surface))
        return "arrived"

    return family("road", take, scope=RoadScope)


async def test_a_field_that_is_known_later_keeps_nobody_out_at_the_gate(make_host, road):
    async with make_host(road) as host:
        assert await host.op("road.take", {}, grants=["road:to=farm,surface=gravel"]) == "arrived"


async def test_it_is_compared_once_it_is_known(make_host, road):
    async with make_host(road) as host:
        for grant in ("road:to=farm", "road:surface=paved", "road"):
            with pytest.raises(OpDenied, match="surface=gravel"):
                await host.op("road.take", {}, grants=[grant])


async def test_the_other_fields_are_compared_at_the_gate(make_host, road):
    async with make_host(road) as host:
        with pytest.raises(OpDenied, match="`road:to=town` is not granted"):
            await host.op("road.take", {"to": "town"}, grants=["road:to=farm,surface=gravel"])


async def test_rights_to_two_things_do_not_add_up_to_a_third(make_host, road):
    async with make_host(road) as host:
        with pytest.raises(OpDenied):
            await host.op("road.take", {}, grants=["road:to=farm", "road:to=town,surface=gravel"])
