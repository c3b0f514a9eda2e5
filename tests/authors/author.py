"""The public API as plugin authors use it. mypy checks this module in strict mode, and a test loads it into a host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
from pydantic import BaseModel
from sideband import CallRequest, CallResult, Host, Level, OpContext, OpFamily, Plugin, Scope, hookimpl, op
from sideband.hooks import Deny, OpCall
from sideband.plugins import PluginContext


class WeatherParams(BaseModel):
    """Parameters of ``weather.now``."""

    city: str


class Weather(BaseModel):
    """The result of ``weather.now``."""

    celsius: float


@attrs.frozen
class WeatherScope(Scope, family="weather"):
    """The scope of ``weather`` capabilities."""

    city: str | None = None


def scope(params: WeatherParams) -> WeatherScope:
    """Return the scope that a request requires."""
    return WeatherScope(city=params.city)


@op("weather.now", requires="weather", scope=scope, level=Level.MONITORED, record=["city"])
async def now(params: WeatherParams, ctx: OpContext) -> Weather:
    """Return the current weather in a city."""
    answer = await ctx.dispatch("http.get", {"url": f"https://weather.example/{params.city}"})
    return Weather(celsius=answer["json"]["celsius"])


def sideband_ops() -> OpFamily:
    """Register the family."""
    return OpFamily(name="weather", ops=(now,), scope=WeatherScope, doc="Current weather.")


@asynccontextmanager
async def lifespan(ctx: PluginContext) -> AsyncIterator[Path]:
    """Provide a folder while the host runs."""
    yield ctx.home / "weather"


class NorthPole:
    """A guard."""

    @hookimpl
    async def op_call(self, event: OpCall, ctx: PluginContext) -> Deny | None:
        """Deny requests for the weather at the north pole."""
        if event.op == "weather.now" and event.params["city"] == "north pole":
            return Deny(f"{ctx.plugin} does not support the north pole")
        return None


def sideband_guards() -> list[type[NorthPole]]:
    """Register the guard."""
    return [NorthPole]


async def embed(module: object) -> float:
    """Run an embedded host."""
    plugins = [Plugin(kind="op", name="weather", value=module)]
    async with Host(plugins=plugins, skill_dirs=[Path("skills")]) as host:
        result: CallResult = await host.run(CallRequest("trip.plan", {"city": "Graz"}, grants=("weather:city=Graz",)))
        for effect in result.effects:
            print(effect.op, effect.status, effect.ms)
        weather = await host.op("weather.now", {"city": "Graz"})
        return float(weather["celsius"])
