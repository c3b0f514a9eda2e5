"""Ops that a program defines itself, without a plugin."""

import pytest
from pydantic import BaseModel
from sideband.broker import BoundOp
from sideband.ops import OpNotFound, op
from sideband.plugins import PluginError

pytestmark = pytest.mark.anyio


class Text(BaseModel):
    text: str


@op("mine.say")
async def say(params: Text, ctx) -> str:
    """Return the text."""
    return params.text


async def test_own_op_has_the_given_plugin_name_and_cannot_dispatch():
    bound = BoundOp.own(say, plugin="program")
    assert (bound.spec, bound.family.name, bound.plugin.name) == (say, "mine", "program")
    assert (bound.plugin.config, bound.plugin.state) == (None, None)
    with pytest.raises(PluginError, match="`program` cannot run"):
        await bound.plugin.context.dispatch("mine.say", {"text": "hello"})


async def test_own_op_cannot_be_looked_up(make_host):
    BoundOp.own(say, plugin="program")
    async with make_host() as host:
        with pytest.raises(OpNotFound):
            await host.op("mine.say", {"text": "hello"})
