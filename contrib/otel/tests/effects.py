"""Make effects, and the spans of them."""

import os

from sideband.hooks import Effect
from sideband.ops import Level, Origin
from sideband_otel._providers import open_telemetry


def effect(**changes):
    """Return a model call, or another effect."""
    found = {
        "effect": "e-1",
        "op": "llm.generate",
        "status": "done",
        "origin": Origin(),
        "level": Level.SAFE,
        "params": {"model": "acme:small"},
        "grant": ["llm"],
        "ms": 5.0,
        "call": "c-1",
        "result": {"model": "acme:small-1", "usage": {"input": 3, "output": 2, "cost": 0.5}, "stop": "end"},
    }
    return Effect(**{**found, **changes})


async def written(sending, *effects):
    """Send effects, and return their spans."""
    opened = open_telemetry(os.environ)
    for one in effects:
        opened.telemetry.effect(one)
    await opened.close(60)
    return sending.spans
