"""Guards and observers see whether an effect may send data to another machine."""

from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sideband import Plugin, hookimpl
from sideband.hooks import Deny, Replace
from sideband.ops import OpContext, OpDenied, OpFamily, OpParamsInvalid, op
from sideband.plugins import PluginInvalid

pytestmark = pytest.mark.anyio


class Config(BaseModel):
    relay: bool = False


class Letter(BaseModel):
    far: bool = False


def post(**options):
    """Return a plugin with the op `post.send`, declared with these options."""

    @op("post.send", **options)
    async def send(params: Letter, ctx: OpContext) -> str:
        return "far" if params.far else "near"

    return Plugin("op", "post", SimpleNamespace(Config=Config, sideband_ops=lambda: OpFamily("post", (send,))))


@pytest.fixture
def seen(hook):
    """The egress of each effect, as guards saw it before and observers after it, and the plugins that saw it."""
    found = []

    @hookimpl
    def op_call(event):
        found.append(event.egress)

    @hookimpl
    def effect(event):
        found.append(event.egress)

    return found, (hook("guard", op_call), hook("observer", effect))


def fail(params):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"egress": True}, True),
        ({"egress": False}, False),
        ({"egress": lambda params: params.far}, False),
        ({"egress": lambda params: not params.far}, True),
        ({"egress": lambda params, config: config.relay}, False),
        ({"egress": lambda params, config: not config.relay}, True),
        ({"egress": fail}, True),
        ({"egress": lambda params: None}, True),
    ],
)
async def test_effect_leaves_the_machine_as_its_op_declares(make_host, seen, options, expected):
    found, plugins = seen
    async with make_host(post(**options), *plugins) as host:
        await host.op("post.send", {})
    assert found == [expected, expected]


async def test_egress_belongs_to_the_parameters_that_a_guard_replaced(make_host, hook):
    class Stays:
        @hookimpl
        def op_call(self, event):
            return Deny("it leaves the machine") if event.egress else None

    class Sends:
        @hookimpl
        def op_call(self, event):
            return Replace({"far": True})

    guards = Plugin("guard", "a", Stays), Plugin("guard", "b", Sends)
    async with make_host(post(egress=lambda params: params.far), *guards) as host:
        with pytest.raises(OpDenied, match="it leaves the machine"):
            await host.op("post.send", {})


@pytest.mark.parametrize("egress", [lambda params: params.far, lambda params: False])
async def test_refused_effect_with_invalid_parameters_may_have_left(make_host, seen, egress):
    found, plugins = seen
    async with make_host(post(egress=egress), *plugins) as host:
        with pytest.raises(OpParamsInvalid):
            await host.op("post.send", {"far": "perhaps"})
    assert found == [True]


async def test_parameter_config_requires_a_configuration(make_host):
    family = post(egress=lambda params, config: True)
    del family.value.Config
    async with make_host(family) as host:
        with pytest.raises(PluginInvalid, match="`egress` takes `config`, but the plugin has no `Config`"):
            await host.plugins.load("op", "post")
